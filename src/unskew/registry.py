"""The registry: which rankers, treatments of clicks and click models there are, and what fits what.

Everything here is data and loads nothing: a home is a text, ``"module:name"``, imported when used.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from unskew.errors import MissingDependencyError, UsageError

if TYPE_CHECKING:
    from unskew.bias.estimator import BiasEstimator


# What a log must have for a method to say anything about it.
FEATURES = "features of the documents"
SHUFFLED_LISTS = "sessions whose lists were shuffled"
MOVING_DOCUMENTS = "documents seen at several positions"
SCORES = "the scores of a ranker"

# The optional dependencies by the name of the extra that installs them.
PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "dask": "Dask",
        "neural": "PyTorch",
        "onnx": "onnx",
        "spark": "PySpark",
        "treelite": "treelite",
        "xgboost": "XGBoost",
    }
)


@dataclass(frozen=True)
class Entry:
    """What every entry has: its name, its home, what help texts say of it, the extra it needs."""

    name: str
    home: str
    summary: str
    extra: str | None = field(default=None, kw_only=True)

    # How the name is written where the entry is chosen.
    spelled: ClassVar[str] = "{}"

    def load(self) -> Any:
        """What stands at its home: a class, a `Library` or a format."""
        module, _, attribute = self.home.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if self.extra is None:
                raise
            chosen = self.spelled.format(self.name)
            raise MissingDependencyError(PACKAGES[self.extra], self.extra, chosen) from error


@dataclass(frozen=True)
class RankerEntry(Entry):
    """A ranker: its name is also the kind of folder that it is saved as.

    ``old_kinds`` are what earlier versions called that.
    """

    old_kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method(Entry):
    """A way to treat clicks.

    Attributes
    ----------
    title
        What tables call it.
    home, settings
        Where its estimator lives, or `WITHIN_A_RANKER`, and the settings that make it this method.
    learned_by
        The rankers that learn the bias while they train.
    held_by
        The rankers for which the bias is estimated first and then held.
    needs, needs_alone
        What a log must have, and what else its estimator must be given.
    sides
        Which curves are learned: t_plus, t_minus. Where any is, the method has the exponent p.
    loss
        The loss that a network needs to learn it.

    """

    _: KW_ONLY
    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    learned_by: tuple[str, ...] = ()
    held_by: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    needs_alone: tuple[str, ...] = ()
    sides: tuple[bool, bool] = (False, False)
    loss: str | None = None

    @property
    def rankers(self) -> tuple[str, ...]:
        """The rankers it goes with."""
        return tuple(name for name in RANKERS if name in {*self.learned_by, *self.held_by})

    def load(self) -> Any:
        """The class of its estimator."""
        if not self.home:
            raise UsageError(
                f"{self.name} is learned by a ranker while it trains and cannot be estimated alone"
            )
        return super().load()


@dataclass(frozen=True)
class ClickModelEntry(Entry):
    """A click model: where it lives and what it assumes. Its class declares the parameters."""

    def parameters(self) -> dict[str, str]:
        """Its parameters and what each means."""
        found: dict[str, str] = self.load().parameters()
        return found


@dataclass(frozen=True)
class ExportEntry(Entry):
    """A format that models are exported to.

    Attributes
    ----------
    title
        What the other system is called.
    versions
        The versions of the other system from which its rules hold, the newest last; empty if it
        does not matter. A version in between has the rules of the one before it.
    newest
        The newest major version that is known.
    boosters
        The boosters whose trees it takes.
    rankers
        The rankers without trees that it takes.

    """

    _: KW_ONLY
    title: str
    versions: tuple[str, ...] = ()
    newest: int | None = None
    boosters: tuple[str, ...] = ("lightgbm", "xgboost")
    rankers: tuple[str, ...] = ()


@dataclass(frozen=True)
class BoosterEntry(Entry):
    """A library that grows trees; its home is a `unskew.trees.boosters.Library`."""

    title: str = field(kw_only=True)

    spelled: ClassVar[str] = 'booster="{}"'


@dataclass(frozen=True)
class EngineEntry(Entry):
    """An engine that trains with several workers."""

    spelled: ClassVar[str] = 'engine="{}"'


def _named(*entries: Any) -> Mapping[str, Any]:
    return MappingProxyType({entry.name: entry for entry in entries})


# The home of a method that no estimator has: it exists only while a ranker trains.
WITHIN_A_RANKER = ""

# The rankers that learn from pairs of a clicked and an unclicked result, and all of them.
_PAIRWISE = ("lambdamart", "ranksvm", "dnn")
_ALL = (*_PAIRWISE, "click-model", "auto")

RANKERS: Mapping[str, RankerEntry] = _named(
    RankerEntry(
        "auto",
        "unskew.choose.ranker:AutoRanker",
        "method and settings chosen from the clicks: a blend of trees",
    ),
    RankerEntry(
        "lambdamart",
        "unskew.rankers.lambdamart.ranker:UnbiasedLambdaMART",
        "gradient-boosted trees on the LambdaMART loss",
        old_kinds=("UnbiasedLambdaMART",),
    ),
    RankerEntry(
        "click-model",
        "unskew.rankers.click_model.ranker:ClickModelRanker",
        "gradient-boosted trees on the likelihood of the clicks by a click model",
    ),
    RankerEntry(
        "ranksvm",
        "unskew.rankers.ranksvm.ranker:PropensityRankSVM",
        "a linear ranker on the pairwise hinge loss",
    ),
    RankerEntry(
        "dnn",
        "unskew.rankers.neural.ranker:NeuralRanker",
        "a neural network",
        extra="neural",
        old_kinds=("neural",),
    ),
)

METHODS: Mapping[str, Method] = _named(
    Method(
        "pairwise",
        "unskew.bias.pairwise:PairwiseDebiasing",
        "Pairwise Debiasing: both curves from the losses of pairs",
        title="Pairwise Debiasing",
        learned_by=_PAIRWISE,
        needs_alone=(SCORES,),
        sides=(True, True),
        loss="pairwise",
    ),
    Method(
        "clicked",
        WITHIN_A_RANKER,
        "Pairwise Debiasing of the clicked side only, t_minus held at 1",
        title="Pairwise Debiasing, clicked side only",
        learned_by=_PAIRWISE,
        sides=(True, False),
        loss="pairwise",
    ),
    Method(
        "click-model",
        WITHIN_A_RANKER,
        "EM of a click model beside trees for the relevance",
        title="Click model",
        learned_by=("click-model", "auto"),
        needs=(FEATURES,),
    ),
    Method(
        "randomization",
        "unskew.bias.randomization:Randomization",
        "CTR by position in shuffled lists",
        title="Randomization",
        held_by=_ALL,
        needs=(SHUFFLED_LISTS,),
    ),
    Method(
        "harvesting",
        "unskew.bias.harvesting:Harvesting",
        "documents seen at two positions compare the two, all pairs at once",
        title="Intervention harvesting",
        held_by=_ALL,
        needs=(MOVING_DOCUMENTS,),
    ),
    Method(
        "regression-em",
        "unskew.bias.regression_em:RegressionEM",
        "examination and relevance, relevance by trees on the features of other queries",
        title="Regression-EM",
        held_by=_ALL,
        needs=(FEATURES,),
    ),
    Method(
        "table-em",
        "unskew.bias.regression_em:RegressionEM",
        "the same model with one free relevance per document",
        title="EM with a table",
        settings=MappingProxyType({"relevance": "table"}),
        held_by=_ALL,
        needs=(MOVING_DOCUMENTS,),
    ),
    Method(
        "dual-learning",
        "unskew.rankers.neural.dual_learning:DualLearning",
        "propensity and ranking networks that weight each other's losses",
        title="Dual Learning",
        learned_by=("dnn",),
        needs=(FEATURES,),
        extra="neural",
        loss="listwise",
    ),
    Method(
        "relative-ctr",
        "unskew.bias.relative_ctr:RelativeCTR",
        "CTR by position relative to position 1, the naive reference",
        title="Relative CTR",
        held_by=_ALL,
    ),
)

CLICK_MODELS: Mapping[str, ClickModelEntry] = _named(
    ClickModelEntry(
        "pbm",
        "unskew.clicks.pbm:PositionBasedModel",
        "position-based: examination by position, times attraction",
    ),
    ClickModelEntry(
        "cascade",
        "unskew.clicks.cascade:CascadeModel",
        "cascade: walk down, stop when satisfied or out of patience",
    ),
    ClickModelEntry(
        "ubm",
        "unskew.clicks.ubm:UserBrowsingModel",
        "user browsing: examination by position and distance to the last click",
    ),
    ClickModelEntry(
        "dbn",
        "unskew.clicks.dbn:DynamicBayesianModel",
        "dynamic Bayesian network: attraction, satisfaction, perseverance",
    ),
    ClickModelEntry(
        "dcm",
        "unskew.clicks.dcm:DependentClickModel",
        "dependent clicks: after a click, go on with a chance by position",
    ),
    ClickModelEntry(
        "trust",
        "unskew.clicks.trust_bias:TrustBiasModel",
        "position-based with trust bias: high positions look relevant",
    ),
    ClickModelEntry(
        "contextual",
        "unskew.clicks.contextual:ContextualModel",
        "position-based, with a curve for each device",
    ),
)

EXPORTS: Mapping[str, ExportEntry] = _named(
    ExportEntry(
        "elasticsearch",
        "unskew.export.elasticsearch:FORMAT",
        "its own learning to rank: a trained model",
        title="Elasticsearch",
        versions=("8.12", "8.15"),
        newest=9,
    ),
    ExportEntry(
        "elasticsearch-ltr",
        "unskew.export.elasticsearch_ltr:FORMAT",
        "model/xgboost+json, and its raw form",
        title="Elasticsearch LTR plugin",
        versions=("7.0", "8.12"),
        newest=9,
    ),
    ExportEntry(
        "opensearch",
        "unskew.export.opensearch:FORMAT",
        "model/xgboost+json of its learning-to-rank plugin, and its raw form",
        title="OpenSearch",
        versions=("2.0", "3.0", "3.3", "3.8"),
        newest=3,
    ),
    ExportEntry(
        "solr",
        "unskew.export.solr:FORMAT",
        "MultipleAdditiveTreesModel",
        title="Solr",
        versions=("8.0", "9.2"),
        newest=10,
    ),
    ExportEntry(
        "vespa",
        "unskew.export.vespa:FORMAT",
        "the booster's JSON as Vespa reads it",
        title="Vespa",
    ),
    ExportEntry(
        "onnx",
        "unskew.export.onnx_model:FORMAT",
        "a graph for onnxruntime and others",
        title="ONNX",
        extra="onnx",
        rankers=("ranksvm", "dnn"),
    ),
    ExportEntry(
        "treelite",
        "unskew.export.treelite_model:FORMAT",
        "its binary form of trees",
        title="treelite",
        extra="treelite",
    ),
    ExportEntry(
        "c",
        "unskew.export.c_code:FORMAT",
        "C code without dependencies, by tl2cgen",
        title="C",
        extra="treelite",
    ),
    ExportEntry(
        "lightgbm",
        "unskew.export.lightgbm_file:FORMAT",
        "its own text",
        title="LightGBM",
        boosters=("lightgbm",),
    ),
    ExportEntry(
        "xgboost",
        "unskew.export.xgboost_file:FORMAT",
        "its own JSON",
        title="XGBoost",
    ),
)

BOOSTERS: Mapping[str, BoosterEntry] = _named(
    BoosterEntry(
        "lightgbm", "unskew.trees.lightgbm_trees:LIBRARY", "the default", title="LightGBM"
    ),
    BoosterEntry(
        "xgboost",
        "unskew.trees.xgboost_trees:LIBRARY",
        "without min_data_in_leaf",
        title="XGBoost",
        extra="xgboost",
    ),
)

ENGINES: Mapping[str, EngineEntry] = _named(
    EngineEntry("local", "unskew.engines.local:Local", "processes of this machine"),
    EngineEntry("dask", "unskew.engines.dask_cluster:Dask", "a Dask cluster", extra="dask"),
    EngineEntry("spark", "unskew.engines.spark_cluster:Spark", "a Spark cluster", extra="spark"),
)


def resolve_engine(engine: Any) -> Any:
    """The engine of that name, with its defaults, or the engine itself."""
    if isinstance(engine, str):
        if engine not in ENGINES:
            raise UsageError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
        return ENGINES[engine].load()()
    if not hasattr(engine, "fit") or not hasattr(engine, "n_workers"):
        raise UsageError(
            f"engine must be one of {', '.join(ENGINES)} or an engine of unskew.engines, got "
            f"{type(engine).__name__}"
        )
    return engine


def make_estimator(name: str, **options: Any) -> BiasEstimator:
    """The estimator of a method; an option that it does not have is left out."""
    if name not in METHODS:
        alone = [entry.name for entry in METHODS.values() if entry.home]
        raise UsageError(
            f"there is no method {name!r}{_guess(name)}: choose from {', '.join(alone)}"
        )
    entry = METHODS[name]
    kind = entry.load()
    known = signature(kind).parameters
    given = {key: value for key, value in options.items() if key in known}
    estimator: BiasEstimator = kind(**{**entry.settings, **given})
    return estimator


def ranker_name(ranker: Any) -> str | None:
    """The registered name of a ranker, or of the one it is derived from; None if there is none."""
    homes = {f"{kind.__module__}:{kind.__qualname__}" for kind in type(ranker).__mro__}
    return next((entry.name for entry in RANKERS.values() if entry.home in homes), None)


def ranker_of_folder(kind: str) -> RankerEntry | None:
    """The ranker that is saved as this kind of folder; None if it is no ranker's."""
    return next((one for one in RANKERS.values() if kind in {one.name, *one.old_kinds}), None)


def check_debias(debias: Any, ranker: str | None) -> None:
    """Refuse a ``debias`` that this ranker can do nothing with; say what it can."""
    if isinstance(debias, type):
        raise UsageError(f"debias must be an estimator, not its class: give {debias.__name__}()")
    if not isinstance(debias, str):
        return
    if debias not in METHODS:
        raise UsageError(f"debias must be {_choices(ranker)}; got {debias!r}{_guess(debias)}")
    entry = METHODS[debias]
    if ranker is not None and ranker not in entry.rankers:
        raise UsageError(
            f"debias={debias!r} goes with {', '.join(entry.rankers)}, not with {ranker}: there, "
            f"debias must be {_choices(ranker)}"
        )


def _guess(name: str) -> str:
    close = difflib.get_close_matches(name, METHODS, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _choices(ranker: str | None) -> str:
    names = [m.name for m in METHODS.values() if ranker is None or ranker in m.rankers]
    listed = "".join(f'"{name}", ' for name in names)
    return f"{listed}None, an estimator, a PositionBias or an array of propensities"
