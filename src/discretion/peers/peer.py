"""Peer: one person's side of the network. It holds only its own profile, and everything it says was paid for before."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from discretion.errors import BudgetExhausted, InvalidDeclaration, PeerRefused
from discretion.noise import ALWAYS, Rng, coins, discrete_laplace
from discretion.peers.account import Account
from discretion.peers.channel import BROKEN, Channel, Place, Record, greet, ignore
from discretion.peers.contacts import Contacts
from discretion.peers.holding import Holding, Terms
from discretion.peers.identity import Identity
from discretion.peers.message import KEY_BITS
from discretion.peers.product import Keys, masked_product
from discretion.social.weight import WHOLE

GUESTS = 64  # connections served at once
STEPS = WHOLE**2  # steps of a product in one fully counted item


class Peer:
    """A profile, an account and an identity that answer others and explore the network.

    The scores of a pair are the same on both sides. Whatever leaves this peer (its friends, its later questions)
    follows from scores and publications alone, and each of these carries noise that this peer drew and paid for.
    """

    def __init__(
        self,
        *,
        identity: Identity,
        account: Account,
        holding: Holding,
        terms: Terms,
        neighbours: int = 10,
        key_bits: int = KEY_BITS,
        rng: Rng = None,
        record: Record = ignore,
    ) -> None:
        if account.durable and (rng is not None or key_bits < KEY_BITS):
            raise InvalidDeclaration("A seeded generator or a short key is for rehearsals only: use Account.rehearsal.")
        if len(holding.catalogue) != terms.items:
            raise InvalidDeclaration("The profile and the terms must have the same catalogue.")
        self.identity, self.account, self.holding, self.terms = identity, account, holding, terms
        self.neighbours, self.key_bits, self.rng, self.record = neighbours, key_bits, rng, record
        self.name = identity.name
        self.contacts = Contacts(identity=identity, account=account, terms=terms.digest, record=record)
        self.view = self.nearest()  # what others are told; changes between cycles only
        self._asking: set[str] = set()
        self._answering: set[str] = set()
        self._guests = asyncio.Semaphore(GUESTS)
        self._keys: Keys | None = None
        self._vector: list[int] = []

    def prepare(self) -> None:
        """Publish or encrypt the profile, once."""
        if self.terms.method == "response":
            self.publication()
        else:
            self._keys = Keys.generate(self.key_bits)
            self._vector = self._keys.encrypt(self.holding.weights.tolist())

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> Place:
        """Publish or encrypt the profile, then listen."""
        self.prepare()
        self._server = await asyncio.start_server(self._welcome, host, port, ssl=self.identity.server_context())
        self.contacts.home = Place(host=host, port=self._server.sockets[0].getsockname()[1])
        return self.contacts.home

    async def stop(self) -> None:
        """Stop listening without a word, as a crash would; `leave` says goodbye first."""
        self._server.close()
        await self._server.wait_closed()

    async def leave(self) -> None:
        """Say goodbye to everybody known, then stop."""
        await self.contacts.say_goodbye()
        await self.stop()

    def publication(self) -> bytes:
        """Return the noisy copy of the profile: charged, drawn and stored at the first call, the same ever after."""
        known = self.account.publication(self.terms.digest)
        if known is None:
            if not self.terms.publication:
                raise PeerRefused("In this network nobody publishes a profile.")
            self.account.charge(self.terms.publication, "publication")  # before anything is drawn
            known = self.holding.report(self.terms, self.rng)
            self.account.keep_publication(self.terms.digest, "", known)
        return known

    def nearest(self) -> list[str]:
        """Return the most similar peers compared so far, best first, ties to the smaller name."""
        scores = self.account.scores(self.terms.digest)
        return sorted(scores, key=lambda peer: (-scores[peer], peer))[: self.neighbours]

    def settle(self) -> None:
        """End a cycle: from now on others are told the friends found in it."""
        self.view = self.nearest()

    async def choose(self, count: int, friends: float = 0.5) -> list[str]:
        """Return whom to ask this cycle: for each, a friend's friend with chance `friends`, else anybody known."""
        return [await self._choose(friends) for _ in range(count)] if self.account.members() else []

    async def meet(self, names: Sequence[str]) -> None:
        """Compare profiles with these peers. Both sides remember the score; who does not answer has none."""
        compare = self._swap if self.terms.method == "response" else self._multiply
        for name in names:
            if name not in self.account.scores(self.terms.digest):
                with suppress(PeerRefused, BudgetExhausted):
                    await compare(name)

    async def recommend(self, count: int = 10) -> list[tuple[str, float]]:
        """Return the items that friends seem to hold most, without one's own; free once friends have published."""
        published = []
        for name in self.view:
            with suppress(PeerRefused):
                published.append(self.terms.estimates(await self._publication_of(name)))
        if not published:
            return []
        total = np.sum(published, axis=0)
        total[self.holding.held] = -np.inf
        best = np.argsort(-total, kind="stable")[:count]
        return [(self.holding.catalogue[item], float(total[item])) for item in best if total[item] > -np.inf]

    async def _choose(self, friends: float) -> str:
        column, place, chance, anyone = (int(coin) for coin in coins(4, self.rng))
        known = sorted(self.account.members())
        friend = self._at(self.view, column)
        if friend and chance < friends * ALWAYS:
            with suppress(PeerRefused):
                async with self.contacts.call(friend) as channel:
                    await channel.send("friends of")
                    _, fields = await channel.receive("friends")
                self.contacts.note(fields["addresses"])
                theirs = self._at([name for name, _, _ in fields["addresses"]], place)
                if theirs and theirs != self.name:
                    return theirs
        return known[anyone % len(known)]

    def _at(self, names: Sequence[str], coin: int) -> str:
        """Return the name at a random one of the places for neighbours; empty if that place is."""
        place = coin % self.neighbours
        return names[place] if place < len(names) else ""

    async def _swap(self, name: str) -> None:
        """Give one's publication for another: both compute the score on their own."""
        async with self.contacts.call(name) as channel:
            await channel.send("swap", bits=self.publication().hex())
            _, fields = await channel.receive("publication")
        self._hear(name, bytes.fromhex(fields["bits"]))

    def _hear(self, name: str, bits: bytes) -> None:
        theirs = self.terms.estimates(bits)
        self.account.keep_publication(self.terms.digest, name, bits)
        if self.terms.method == "response":
            score = float(np.sum(theirs * self.terms.estimates(self.publication())))
            self.account.keep_score(self.terms.digest, name, score)

    async def _multiply(self, name: str) -> None:
        """Learn the noisy product with a peer: it adds noise under encryption, this peer adds its own and tells it."""
        price, keys = self.terms.comparison, self._keys
        with self.account.held(price) as enough:
            if keys is None or not enough or name in self._asking | self._answering:
                return
            self._asking.add(name)
            try:
                async with self.contacts.call(name) as channel:
                    await channel.send("compare")
                    kind, fields = await channel.receive("accept", "wait", "score", "refused")
                    if kind == "accept":
                        self.account.charge_held(price, f"product with {name}")  # before anything is sent
                        vector = [f"{value:x}" for value in self._vector]
                        await channel.send("vector", modulus=f"{keys.modulus:x}", values=vector)
                        _, masked = await channel.receive("masked")
                        fields = {"steps": keys.decrypt(int(masked["value"], 16)) + self._noise()}
                        self._keep(name, fields["steps"])
                        await channel.send("score", **fields)
                    elif kind == "score":  # it remembers what this peer forgot in a crash
                        self._keep(name, fields["steps"])
            finally:
                self._asking.discard(name)

    async def _answer_compare(self, channel: Channel) -> None:
        name, price = channel.peer, self.terms.comparison
        known = self.account.scores(self.terms.digest).get(name)
        if known is not None:
            return await channel.send("score", steps=round(known * STEPS))
        if name in self._answering or not price:
            return await channel.send("refused", reason="busy")
        if name in self._asking and self.name < name:
            return await channel.send("wait")  # both ask at once: the question of the smaller name counts
        charge = self.account.charge_held if name in self._asking else self.account.charge
        try:
            charge(price, f"product with {name}")  # before anything is sent
        except BudgetExhausted:
            return await channel.send("refused", reason="spent")
        self._answering.add(name)
        try:
            await self._answer_vector(channel)
        finally:
            self._answering.discard(name)

    async def _answer_vector(self, channel: Channel) -> None:
        await channel.send("accept")
        _, fields = await channel.receive("vector")
        modulus, values = int(fields["modulus"], 16), [int(value, 16) for value in fields["values"]]
        if modulus.bit_length() < self.key_bits or modulus % 2 == 0 or len(values) != self.terms.items:
            raise PeerRefused("The other side sent a key that is too short, or not one number per item.")
        masked = masked_product(modulus, values, self.holding.weights.tolist(), self._noise())
        await channel.send("masked", value=f"{masked:x}")
        _, fields = await channel.receive("score")
        self._keep(channel.peer, fields["steps"])

    def _noise(self) -> int:
        """Draw the noise that protects this peer's profile: discrete Laplace on the steps of the product."""
        return int(discrete_laplace(self.terms.scale, 1, self.rng)[0])

    def _keep(self, name: str, steps: int) -> None:
        self.account.keep_score(self.terms.digest, name, steps / STEPS)

    async def _publication_of(self, name: str) -> bytes:
        known = self.account.publication(self.terms.digest, name)
        if known is None:
            async with self.contacts.call(name) as channel:
                await channel.send("publication of")
                kind, fields = await channel.receive("publication", "refused")
            if kind == "refused":
                raise PeerRefused("This peer has not published a profile.")
            known = bytes.fromhex(fields["bits"])
            self._hear(name, known)
        return known

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. Anything wrong with it ends it, and nothing else; so does the end of this peer."""
        channel = Channel(reader=reader, writer=writer, own=self.name, record=self.record)
        with suppress(PeerRefused, asyncio.CancelledError, *BROKEN):
            try:
                async with self._guests:
                    await self._host(channel)
            finally:
                await channel.close()

    async def _host(self, channel: Channel) -> None:
        terms, home = await greet(self.identity, channel)
        if terms != self.terms.digest or channel.peer == self.name:
            await channel.send("refused", reason="terms")
        else:
            self.contacts.introduce(channel.peer, home)
            await self._answer(channel)

    async def _answer(self, channel: Channel) -> None:
        kind, fields = await channel.receive("members", "friends of", "swap", "publication of", "compare", "goodbye")
        if kind == "members":
            await channel.send("members", addresses=self.contacts.addresses(self.account.members()))
            self.contacts.note(fields["addresses"])
        elif kind == "friends of":
            await channel.send("friends", addresses=self.contacts.addresses(self.view))
        elif kind == "compare":
            await self._answer_compare(channel)
        elif kind == "goodbye":
            self.account.forget(channel.peer)
            await channel.send("done")
        else:
            await self._answer_publication(channel, fields.get("bits", ""))

    async def _answer_publication(self, channel: Channel, theirs: str) -> None:
        try:
            await channel.send("publication", bits=self.publication().hex())
        except (PeerRefused, BudgetExhausted):
            await channel.send("refused", reason="nothing published")
            return
        if theirs:
            self._hear(channel.peer, bytes.fromhex(theirs))
