"""Who is at the browser: a signed cookie, and the token that its forms carry."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from dataclasses import dataclass

from itsdangerous import BadData, URLSafeSerializer

from unskew.errors import UsageError

NAME_LENGTH = 60


@dataclass(frozen=True)
class Session:
    """A browser's session: random, and new whenever somebody else sits down."""

    id: str
    name: str | None = None


class Sessions:
    """Writes and reads session cookies by the secret of one database."""

    def __init__(self, secret: str) -> None:
        self._serializer = URLSafeSerializer(secret, salt="unskew judge session")
        self._secret = secret.encode()
        # Browsers do not keep the cookies of two ports apart: each database has its own cookie.
        self.cookie = f"unskew_judge_{hashlib.sha256(self._secret).hexdigest()[:12]}"

    def new(self, name: str | None = None) -> Session:
        """A session that no form of an earlier page fits."""
        return Session(secrets.token_hex(16), name)

    def read(self, cookie: str | None) -> Session | None:
        """The session of a cookie; nothing if it is absent or not ours."""
        try:
            content = self._serializer.loads(cookie or "")
        except BadData:
            return None
        return Session(content["id"], content["name"])

    def write(self, session: Session) -> str:
        """A session as a cookie's value."""
        return str(self._serializer.dumps({"id": session.id, "name": session.name}))

    def token(self, session: Session) -> str:
        """What every form of the session must bring back."""
        return hmac.new(self._secret, session.id.encode(), "sha256").hexdigest()

    def fits(self, session: Session, token: str) -> bool:
        """Whether a form's token is the session's."""
        return hmac.compare_digest(self.token(session).encode(), token.encode())


def clean_name(typed: str) -> str:
    """An assessor's name as it is kept: one way to write each letter, single spaces."""
    name = " ".join(unicodedata.normalize("NFC", typed).split())
    if not 1 <= len(name) <= NAME_LENGTH:
        raise UsageError(f"a name has 1 to {NAME_LENGTH} characters, got {len(name)}")
    if any(unicodedata.category(c) in {"Cc", "Cs", "Co", "Cn"} for c in name):
        raise UsageError("a name may not contain control characters")
    return name
