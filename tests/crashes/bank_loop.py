"""Kills parts of a running bank at random moments until all transfers are through, then checks.

``PYTHONPATH=. python tests/crashes/bank_loop.py FOLDER --transfers 12000 --victims driver,worker``

Each victim dies once, in a random order, as soon as some more transfers are applied. A driver that
was killed is started again on the same checkpoint. All the time an auditor adds up the accounts, as
any reader might. The last line of output says what was killed and what is wrong; exit code 1 if
anything is.
"""

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg

from sparkstorm.testing.servers import PostgresServer
from tests.crashes import processes

_HERE = Path(__file__).parent
_ACCOUNTS = 20
_BALANCE = 1_000
_TABLES = """
    create table accounts (id bigint primary key, balance bigint not null);
    create table transfers (id bigint, source bigint, target bigint, amount bigint, number bigint);
"""


class Auditor(threading.Thread):
    """Adds up all accounts again and again, and counts the transfers."""

    def __init__(self, dsn: str) -> None:
        super().__init__(daemon=True)
        self.sums: Counter[int] = Counter()
        self.applied = 0
        self._dsn = dsn
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.01):
            try:
                self._look()
            except psycopg.OperationalError:
                continue  # the database, or this connection, was killed

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _look(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._over.wait(0.01):
                [(total,)] = connection.execute("select sum(balance) from accounts")
                [(self.applied,)] = connection.execute("select count(*) from transfers")
                self.sums[int(total)] += 1


class BankLoop:
    """One bank, its folder, and the dice."""

    def __init__(self, folder: Path, options: argparse.Namespace, bank: PostgresServer) -> None:
        folder.mkdir(parents=True)
        self.killed: Counter[str] = Counter()
        self._folder = folder
        self._options = options
        self._bank = bank
        self._dice = random.Random(options.seed)
        self._auditor = Auditor(bank.dsn)
        self._deadline = time.monotonic() + options.minutes * 60

    def run(self) -> dict[str, object]:
        """Kill until all transfers are through; return what is wrong."""
        given = self._write_transfers()
        with psycopg.connect(self._bank.dsn) as connection:
            connection.execute(_TABLES)
            rows = [(account, _BALANCE) for account in range(_ACCOUNTS)]
            connection.cursor().executemany("insert into accounts values (%s, %s)", rows)
        victims = self._options.victims.split(",")
        self._dice.shuffle(victims)
        self._auditor.start()
        while self._live_once(victims):
            pass
        self._auditor.stop()
        wrong = {**self._compare(given), "never killed": victims}
        if set(self._auditor.sums) != {_ACCOUNTS * _BALANCE}:
            wrong["sums that were seen"] = dict(self._auditor.sums)
        return {what: details for what, details in wrong.items() if details}

    def _write_transfers(self) -> list[tuple[int, ...]]:
        given = [
            (number, *self._dice.sample(range(_ACCOUNTS), 2), self._dice.randint(1, 50))
            for number in range(self._options.transfers)
        ]
        lines = "".join(" ".join(map(str, row)) + "\n" for row in given)
        (self._folder / "transfers.txt").write_text(lines)
        return given

    def _live_once(self, victims: list[str]) -> bool:
        """One life of the driver; returns whether there must be another."""
        driver = self._start()
        try:
            while victims and self._progress(driver, self._dice.randint(1, 200)):
                if self._kill(driver.pid, victims[0]):
                    self.killed[victims[0]] += 1
                    print("killed", victims.pop(0), flush=True)
            code = driver.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise SystemExit(f"not through in time: {self._last_words()}") from None
        finally:
            processes.kill(driver.pid)
            driver.wait()
        if code > 0:
            raise SystemExit(f"the driver ended with {code}: {self._last_words()}")
        return code != 0

    def _start(self) -> "subprocess.Popen[bytes]":
        options = ["--transfers", self._folder / "transfers.txt", "--dsn", self._bank.dsn]
        options += ["--checkpoint", self._folder / "checkpoint"]
        command = [sys.executable, str(_HERE / "bank.py"), *map(str, options)]
        with (self._folder / "driver.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _progress(self, driver: "subprocess.Popen[bytes]", more: int) -> bool:
        """Wait until so many more transfers are applied; returns whether the driver still lives."""
        wanted = min(self._auditor.applied + more, self._options.transfers)
        while self._auditor.applied < wanted and time.monotonic() < self._deadline:
            try:
                driver.wait(0.005)
            except subprocess.TimeoutExpired:
                continue
            return False
        return driver.poll() is None

    def _kill(self, driver: int, kind: str) -> bool:
        if kind == "database":
            self._bank.kill()
            self._bank.start()
            return True
        if kind == "connections":
            with psycopg.connect(self._bank.dsn, autocommit=True) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where backend_type = 'client backend' and pid <> pg_backend_pid()"
                )
            return True
        found = processes.find(driver, kind)
        return bool(found) and processes.kill(found[0])

    def _compare(self, given: list[tuple[int, ...]]) -> dict[str, object]:
        """Each transfer is applied once, as its account's state counted it, and nothing else is."""
        balances = Counter(dict.fromkeys(range(_ACCOUNTS), _BALANCE))
        for _, source, target, amount in given:
            balances[source] -= amount
            balances[target] += amount
        with psycopg.connect(self._bank.dsn) as connection:
            applied = [*connection.execute("select id, source, target, amount from transfers")]
            stand = dict(connection.execute("select id, balance from accounts").fetchall())
            numbers: dict[int, list[int]] = {}
            for source, number in connection.execute("select source, number from transfers"):
                numbers.setdefault(source, []).append(number)
        once = Counter(applied)
        return {
            "lost": len([row for row in given if row not in once]),
            "more than once": len([row for row, times in once.items() if times > 1]),
            "made up": len([row for row in once if row not in set(given)]),
            "balances": [account for account in stand if stand[account] != balances[account]],
            "state": [n for n, of in numbers.items() if sorted(of) != [*range(1, len(of) + 1)]],
        }

    def _last_words(self) -> str:
        return (self._folder / "driver.log").read_text(errors="replace")[-4000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--transfers", type=int, default=12_000)
    parser.add_argument("--victims", default="driver,worker,connections,database")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--minutes", type=float, default=10.0, help="when to call it stuck")
    options = parser.parse_args()
    print("seed", options.seed, flush=True)
    started = time.monotonic()
    with PostgresServer() as bank:
        loop = BankLoop(options.folder, options, bank)
        wrong: dict[str, Any] = loop.run()
    print(json.dumps({"secs": round(time.monotonic() - started), "killed": loop.killed, **wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
