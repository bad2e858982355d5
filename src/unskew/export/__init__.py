"""Export: a model in the formats of other systems, one file each, and the scorer that serves it."""

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew.export.exporting import Parity as Parity
    from unskew.export.exporting import check_export as check_export
    from unskew.export.exporting import export_model as export_model

__all__, __getattr__, __dir__ = lazy_names(__name__)
