"""A server that cheats, against two clients: this package's, and the SecAgg+ mod that Flower ships.

Each target has the same attacks as methods; one returns True where the client went along with it.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from bitldp.federated import flower
from bitldp.sums.protocol import Agreement, Stage, SummingServer, SumRefusedError
from bitldp.sums.protocol.client import ADVERT, Advert
from bitldp.sums.protocol.masks import public_of
from bitldp.sums.protocol.messages import flags, members, message, read_rows, rows
from flwr.app import ConfigRecord, Context, Message, RecordDict

from support.sums import Machines, signing_keys

ATTACKS = (
    "overlap",
    "threshold_of_one",
    "modulus_of_two",
    "fewer_survivors_than_the_floor",
    "second_unmasking",
    "foreign_keys",
    "swapped_keys",
    "overflow_of_the_weight",
    "replay",
)

CLIENTS, FLOOR, VICTIM = 6, 4, 2


class Ours:
    """Clients of `bitldp.sums.protocol`, and what a server can try on them."""

    def __init__(self) -> None:
        self.machines = Machines(CLIENTS, FLOOR)

    def refused(self, index: int, data: bytes) -> bool:
        """Return whether a client refuses a message, and answers nothing more of the round."""
        client = self.machines.clients[index]
        try:
            client.answer(data, lambda: np.zeros(3, int))
        except SumRefusedError:
            return b'"seed": ""' in client.state
        return False

    def all_refuse(self, messages: dict[int, bytes]) -> bool:
        return all(self.refused(index, data) for index, data in messages.items())

    def said(self, stage: Stage, body: bytes) -> bytes:
        """Return a message of the running session, as the server words it."""
        bound = self.machines.server._view.session if stage > Stage.SHARE else self.machines.agreement.digest
        return message(stage, reply=False, bound=bound, number=1, body=body)

    def overlap(self) -> bool:
        """Tell half of the clients that the victim survived, and half that it dropped out."""
        messages = self.machines.run(until=3)
        alive = flags(np.ones(CLIENTS, bool))
        gone = flags(members({*range(CLIENTS)} - {VICTIM}, CLIENTS))
        views = {0: alive, 1: alive, VICTIM: alive, 3: gone, 4: gone, 5: gone}
        signed = {
            index: self.machines.clients[index].answer(self.said(Stage.AGREE, view))[47:]
            for index, view in views.items()
        }
        del messages
        mixed = self.said(Stage.REVEAL, rows(list(signed.items())[:CLIENTS]))
        own = {
            index: self.said(Stage.REVEAL, rows((i, s) for i, s in signed.items() if views[i] == view))
            for index, view in views.items()
        }
        both = copy.deepcopy(self.machines)
        mixed_refused = self.all_refuse(dict.fromkeys(views, mixed))
        self.machines = both
        return not (mixed_refused and self.all_refuse(own))

    def _other_terms(self, **changes: Any) -> bool:
        """Send the messages of an agreement that differs from the clients'."""
        own = self.machines.agreement
        other = Agreement(
            replace(own.sum, **{k: v for k, v in changes.items() if k != "threshold"}), own.keys
        )
        if "threshold" in changes:
            object.__setattr__(other, "threshold", changes["threshold"])  # the constructor refuses it
        return not self.all_refuse(SummingServer(other, 1).invite(list(range(CLIENTS))))

    def threshold_of_one(self) -> bool:
        return self._other_terms(threshold=1)

    def modulus_of_two(self) -> bool:
        return self._other_terms(bits=1)

    def fewer_survivors_than_the_floor(self) -> bool:
        few = {0, 1, VICTIM}
        self.machines.run(until=3)
        refused = self.all_refuse(dict.fromkeys(few, self.said(Stage.AGREE, flags(members(few, CLIENTS)))))
        self.machines = Machines(CLIENTS, FLOOR)
        messages = self.machines.run(until=1)
        keys = read_rows(messages[0][47:], ADVERT, CLIENTS)
        some = self.said(Stage.SHARE, rows((index, keys[index]) for index in few))
        return not (refused and self.all_refuse(dict.fromkeys(few, some)))

    def second_unmasking(self) -> bool:
        self.machines.run()
        gone = flags(members({*range(CLIENTS)} - {VICTIM}, CLIENTS))
        again = {index: self.said(Stage.AGREE, gone) for index in range(CLIENTS)}
        refused = self.all_refuse(again)
        return not (refused and self.all_refuse({i: self.said(Stage.REVEAL, b"") for i in range(CLIENTS)}))

    def _keys(self, change: Any) -> bool:
        """Send other keys than those that the clients have signed."""
        messages = self.machines.run(until=1)
        keys = change(read_rows(messages[VICTIM][47:], ADVERT, CLIENTS))
        return not self.refused(VICTIM, self.said(Stage.SHARE, rows(keys.items())))

    def foreign_keys(self) -> bool:
        """Stand for all other clients, with keys that the server knows."""

        def change(keys: dict[int, bytes]) -> dict[int, bytes]:
            for index in keys:
                if index != VICTIM:
                    known = bytes([index]) * 32
                    advert = Advert(known, public_of(known), public_of(known[::-1] + b""), known)
                    text = advert.text(self.machines.agreement, 1, index)
                    keys[index] = bytes(advert) + signing_keys(20)[19].sign(text)
            return keys

        return self._keys(change)

    def swapped_keys(self) -> bool:
        return self._keys(lambda keys: {**keys, 0: keys[1], 1: keys[0]})

    def overflow_of_the_weight(self) -> bool:
        """Sum the largest number that a client can give: every share weighs one, and the sum is right."""
        values = np.full((CLIENTS, 3), (1 << 16) - 1, np.uint64)
        self.machines.run(values=values)
        right = values.sum(axis=0) & np.uint64((1 << 16) - 1)
        return not np.array_equal(self.machines.server.opened.total, right)

    def replay(self) -> bool:
        """Begin the round again, and send a message and keys of an older one."""
        first = self.machines.run(1, until=2)
        self.machines.run(2, until=1)
        older = self.all_refuse(first)
        invitation = SummingServer(self.machines.agreement, 2).invite(list(range(CLIENTS)))
        return not (older and self.all_refuse(invitation))


class Flowers:
    """Clients of `flwr.client.mod.secaggplus_mod`, and what a server can try on them."""

    def __init__(self) -> None:
        from flwr.client.mod import secaggplus_mod

        self.mod = secaggplus_mod
        self.vector = np.linspace(-1.0, 1.0, 8)
        self.examples = 1
        self.contexts = {
            node: Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})
            for node in range(1, CLIENTS + 1)
        }
        self.terms = {
            "sample_num": CLIENTS,
            "share_num": CLIENTS,
            "threshold": FLOOR,
            "clipping_range": 4.0,
            "target_range": 1 << 16,
            "mod_range": 1 << 24,
            "max_weight": 1.0,
        }

    def ask(self, node: int, stage: str, configs: dict[str, Any]) -> ConfigRecord:
        with flower.identity(1):
            content = RecordDict({"secaggplus_configs": ConfigRecord({**configs, "stage": stage})})
            asked = Message(content, node, "train")
        return self.mod(asked, self.contexts[node], self._train).content["secaggplus_configs"]

    def _train(self, asked: Message, context: Context) -> Message:
        from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
        from flwr.compat.common import recorddict_compat

        vector = self.vector if context.node_id == VICTIM else np.zeros(8)
        result = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([vector]), self.examples, {})
        return Message(recorddict_compat.fitres_to_recorddict(result, False), reply_to=asked)

    def run(self, until: str = "unmask", keys: Any = None) -> dict[int, ConfigRecord]:
        """Run the stages, and return the last replies; `keys` may change what the victim is sent."""
        nodes = list(self.contexts)
        public = {node: self.ask(node, "setup", dict(self.terms)) for node in nodes}
        if until == "setup":
            return public
        sent = {str(node): [each["pk1"], each["pk2"]] for node, each in public.items()}
        shares = {}
        for node in nodes:
            view = keys(dict(sent)) if keys and node == VICTIM else sent
            shares[node] = self.ask(node, "share_keys", dict(view))
        if until == "share_keys":
            return shares
        masked = {}
        for node in nodes:
            mine = [
                (source, text)
                for source, each in shares.items()
                for to, text in zip(each["dsts"], each["ctxts"], strict=True)
                if to == node
            ]
            configs = {"srcs": [source for source, _ in mine], "ctxts": [text for _, text in mine]}
            masked[node] = self.ask(node, "collect_masked_vectors", configs)
        return masked

    def masked(self, replies: dict[int, ConfigRecord]) -> np.ndarray:
        from flwr.common import bytes_to_ndarray

        return bytes_to_ndarray(replies[VICTIM]["masked_params"][1]).astype(np.int64)

    def grid(self) -> np.ndarray:
        """Return the victim's vector in the steps that are summed, to one step."""
        return (self.vector + 4.0) * (1 << 16) / 8.0

    def both(self, active: list[int], dead: list[int]) -> dict[int, dict[int, list[bytes]]]:
        """Return the shares that the clients give for lists of active and dead ones."""
        return {
            node: self.ask(node, "unmask", {"active_nids": active, "dead_nids": dead})
            for node in self.contexts
        }

    def overlap(self) -> bool:
        """Name the victim as active and as dead, and take all masks off its vector."""
        from flwr.common.secure_aggregation.crypto.shamir import combine_shares
        from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
        from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
        from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key

        masked = self.masked(self.run())
        public = {node: self.contexts[node].state["secaggplus_state"]["pk1"] for node in self.contexts}
        replies = self.both([VICTIM, 1, 3, 4], [VICTIM])
        seeds, keys = [], []
        for each in replies.values():
            seeds.append(each["shares"][each["nids"].index(VICTIM)])
            keys.append(each["shares"][-1])
        seed, private = combine_shares(seeds[:FLOOR]), combine_shares(keys[:FLOOR])
        kind = [(1,), (8,)]
        found = masked - pseudo_rand_gen(seed, self.terms["mod_range"], kind)[1]
        for node, each in public.items():
            if node != VICTIM:
                shared = generate_shared_key(bytes_to_private_key(private), bytes_to_public_key(each))
                mask = pseudo_rand_gen(shared, self.terms["mod_range"], kind)[1]
                found += mask if node > VICTIM else -mask
        return bool(np.abs(found % self.terms["mod_range"] - self.grid()).max() <= 1.0)

    def threshold_of_one(self) -> bool:
        self.terms["threshold"] = 1
        return VICTIM in self.run()

    def modulus_of_two(self) -> bool:
        """Have all masks be zeros: the low bit of the vector is sent as it is."""
        from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

        self.terms["mod_range"] = 2
        sent = self.masked(self.run())
        return set(sent) <= {0, 1} and not pseudo_rand_gen(bytes(range(32)), 2, [(100,)])[0].any()

    def fewer_survivors_than_the_floor(self) -> bool:
        self.terms["threshold"] = 2
        self.run()
        return len(self.both([1, VICTIM], [3, 4, 5, 6])) == CLIENTS

    def second_unmasking(self) -> bool:
        self.run()
        self.both([1, 2, 3, 4, 5, 6], [])
        try:
            self.both([1, 3, 4, 5, 6], [VICTIM])
        except ValueError:
            return False
        return True

    def foreign_keys(self) -> bool:
        """Stand for all other clients, with keys that the server knows."""
        from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes

        def change(keys: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
            made = {node: [public_key_to_bytes(generate_key_pairs()[1]) for _ in range(2)] for node in keys}
            return {**made, str(VICTIM): keys[str(VICTIM)]}

        return VICTIM in self.run("share_keys", change)

    def swapped_keys(self) -> bool:
        return VICTIM in self.run("share_keys", lambda keys: {**keys, "4": keys["5"], "5": keys["4"]})

    def overflow_of_the_weight(self) -> bool:
        """Have a client with many examples overflow its slot, so that its share is another number."""
        self.examples, self.terms["max_weight"] = 1 << 12, 1.0
        replies = self.run()
        weight = (1 << 12) * self.terms["target_range"]
        return VICTIM in replies and weight > self.terms["mod_range"]

    def replay(self) -> bool:
        """Begin the round again, with the same terms and keys of others."""
        self.run()
        return VICTIM in self.run()
