"""The desk: a thread of the driver that answers Spark's planning process with the rows of tables.

The process can neither reach the driver's session nor start another. Only bytes of JSON pass, on a
socket of this user, behind a key that is made anew for each desk.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import NamedTuple, final

from pyspark.sql import SparkSession

from sparkstorm.errors import CheckpointError, SparkstormError
from sparkstorm.spark.tables.content import Content
from sparkstorm.spark.tables.pieces import Piece
from sparkstorm.texts.logs import logger_of

__all__ = ["Address", "Desk", "ask"]

_PIECE, _END, _FAULT = b"=", b".", b"!"

_logger = logger_of(__name__)


class Address(NamedTuple):
    """The socket of a desk, and the key that the desk asks for."""

    path: str
    key: bytes


@final
class Desk:
    """Answers until the driver's process ends.

    Args:
        session: reads what the desk is asked for.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        key = secrets.token_bytes(32)
        self._listener = Listener(family="AF_UNIX", authkey=key)
        self.address = Address(str(self._listener.address), key)
        threading.Thread(target=self._serve, name="sparkstorm-tables", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError) as error:  # a stranger, say
                _logger.debug("a caller left: %s", error)
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: "Connection[bytes, bytes]") -> None:
        with connection:
            try:
                table, checkpoint = json.loads(connection.recv_bytes())
                for piece in Content(self._session, checkpoint).pieces(table):
                    connection.send_bytes(_PIECE + piece.to_json())
                connection.send_bytes(_END)
            except (BrokenPipeError, EOFError) as error:  # the query was cancelled
                _logger.debug("a caller left: %s", error)
            except Exception as error:  # noqa: BLE001 - the thread's edge: raised by the caller
                kind = "" if isinstance(error, SparkstormError) else f"{type(error).__name__}: "
                connection.send_bytes(_FAULT + f"{kind}{error}".encode())


def ask(address: Address, table: str, checkpoint: str) -> Iterator[Piece]:
    """Yield the rows of a table, from the driver's desk.

    Raises:
        CheckpointError: the driver cannot read the checkpoint, or has ended.
    """
    try:
        connection = Client(address.path, family="AF_UNIX", authkey=address.key)
    except OSError as error:
        raise CheckpointError(
            f"the driver that registered the format does not answer ({error}): call "
            f"sparkstorm.spark.register(spark) in the session that reads"
        ) from error
    with connection:
        connection.send_bytes(json.dumps([table, checkpoint]).encode())
        while (answer := connection.recv_bytes())[:1] == _PIECE:
            yield Piece.from_json(answer[1:])
    if answer[:1] == _FAULT:
        raise CheckpointError(answer[1:].decode())
