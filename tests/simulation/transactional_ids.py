"""The transactional ids of a simulation, and their processes: they start, pause, crash, and fence each other."""

from __future__ import annotations

from tests.simulation.transactional_process import TransactionalProcess
from tests.simulation.world import World
from tests.support.broker.client_transactions import TransactionalId

MOST_IDS = 3
PLACES = ("clean", 0), ("clean", 1), ("ledger", 0)
PATIENCE_MS = 300_000
ROUND_MS = 200


class TransactionalIds:
    """All transactional ids. Each call of `act` lets the processes of one do something."""

    def __init__(self, world: World) -> None:
        self.world = world
        chance = world.chance
        self.processes: dict[str, list[TransactionalProcess]] = {}
        """By transactional id; usually one, more while a later one fences an earlier one."""
        self._started = 0
        for number in range(chance.randint(1, MOST_IDS)):
            transactional_id = TransactionalId(f"id-{number}", f"exactly-{chance.randrange(2)}", PLACES[number])
            world.transactions.ids.append(transactional_id)
            self.processes[transactional_id.name] = []

    def act(self) -> None:
        """Let the processes of one transactional id act, and let some processes start and stop."""
        chance = self.world.chance
        transactional_id = chance.choice(self.world.transactions.ids)
        processes = self._living(transactional_id)
        draw = chance.random()
        if not processes or (draw < 0.02 and len(processes) < 3):
            self._start(transactional_id)
        elif draw < 0.04:
            chance.choice(processes).crash()
        for process in self._living(transactional_id):
            if chance.random() < 0.8:
                process.act()

    def _living(self, known: TransactionalId) -> list[TransactionalProcess]:
        processes = self.processes[known.name]
        processes[:] = [process for process in processes if not process.is_gone]
        return list(processes)

    def _start(self, known: TransactionalId) -> TransactionalProcess:
        world = self.world
        self._started += 1
        name = f"{known.name}.{self._started}"
        process = TransactionalProcess(world, name, known, world.chance.choice(world.client_ids))
        process.initialised = lambda: self._fence_others(known, process)
        others = self._living(known)
        for other in others:
            other.had_company = process.had_company = True
        self.processes[known.name].append(process)
        return process

    def _fence_others(self, known: TransactionalId, process: TransactionalProcess) -> None:
        others = [other for other in self._living(known) if other is not process]
        process.had_company = bool(others)
        for other in others:
            other.is_fenced |= other.has_epoch and other.producer < process.producer

    # ---- at the end ----------------------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """End all processes, and let a last one of each id fence them, commit a transaction, and see it complete."""
        world = self.world
        last = []
        for transactional_id in world.transactions.ids:
            for process in self._living(transactional_id):
                process.crash()
            process = self._start(transactional_id)
            process.rest()
            last.append(process)
        deadline_ms = world.now_ms + PATIENCE_MS
        while not all(process.is_complete for process in last):
            incomplete = [process.name for process in last if not process.is_complete]
            assert world.now_ms < deadline_ms, f"transactions are not complete: {incomplete}"
            for process in last:
                process.act()
            world.advance(ROUND_MS)
        world.advance(ROUND_MS)
        self._check_decided()

    def _check_decided(self) -> None:
        """Check that no transaction is open, and that the offsets of the committed ones are in the log with their records."""
        world = self.world
        for topic in world.image.topics.values():
            for state in topic.partitions:
                logged = world.truth.histories[topic.topic_id, state.index].transactions
                assert not logged.has_open, f"{logged.name}: a transaction stays open"
        for transactional_id in world.transactions.ids:
            for number, transaction in transactional_id.offsets.items():
                is_lost = transaction.offset == number and True in transaction.decisions.values()
                places = {name.rpartition("-")[0] for name in transaction.decisions}
                assert not is_lost or "__consumer_offsets" in places, f"{transaction.name}: offset {number} is lost"
