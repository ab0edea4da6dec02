"""The Python end of llamagym's bridge to Gymnasium and PettingZoo: one environment, one JSON object a line.

A request is {"id", "method", "params"}, its answer {"id", "result"} or {"id", "error": {"type", "message", "traceback"}}.
The first method is "open"; then "reset", "step", "render", "close". Infinite numbers and NaN are strings.
"""

import base64
import collections
import importlib
import json
import math
import os
import queue
import sys
import threading
import traceback

PROTOCOL = 1

# What an environment prints must not reach the lines that the other end reads.
replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
# Nor may an environment that asks for input read these lines: it finds the end of a file.
requests = os.fdopen(os.dup(0), "rb")
with open(os.devnull, "rb") as nothing:
    os.dup2(nothing.fileno(), 0)
sys.stdin = open(0, encoding="utf-8", closefd=False)


# Integers that a double holds exactly.
MAX_INTEGER = 2**53 - 1

# Deepest level of an info that is not text.
MAX_INFO_DEPTH = 50


def number(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        if abs(value) <= MAX_INTEGER:
            return value
        raise ValueError(f"the integer {value} is beyond 2^53, so that a double cannot hold it; scale it, or give it as text")
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def nested(value):
    return [nested(part) for part in value] if isinstance(value, list) else number(value)


def bound(value):
    """A bound of a Box: integers beyond those of a double are infinite."""
    return number(math.copysign(math.inf, value) if isinstance(value, int) and abs(value) > MAX_INTEGER else value)


def unpack(method, result, names):
    """Returns the values that an environment's method returned, if they are as many as Gymnasium's."""
    if isinstance(result, tuple) and len(result) == len(names):
        return result
    found = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
    raise TypeError(f"{method}() must return ({', '.join(names)}), but returned {found}.")


class Codec:
    """Gymnasium's spaces and their members as JSON."""

    PRINTABLE = "\n" + "".join(map(chr, [*range(32, 127), *range(160, 256)]))

    def __init__(self, numpy, spaces, utils):
        self.numpy = numpy
        self.spaces = spaces
        self.utils = utils

    def describe(self, space):
        kinds = self.spaces
        if isinstance(space, kinds.Discrete):
            return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
        if isinstance(space, kinds.Box):
            dtype = {"float16": "float32", "uint64": "int64", "bool": "uint8"}.get(space.dtype.name, space.dtype.name)
            low, high = ([bound(value) for value in array.reshape(-1).tolist()] for array in (space.low, space.high))
            return {"type": "Box", "low": low, "high": high, "shape": list(space.shape), "dtype": dtype}
        if isinstance(space, kinds.MultiBinary):
            return {"type": "MultiBinary", "n": list(space.shape)}
        if isinstance(space, kinds.MultiDiscrete):
            start = getattr(space, "start", self.numpy.zeros_like(space.nvec))
            return {"type": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": start.tolist()}
        if isinstance(space, kinds.Text):
            lengths = {"max_length": int(space.max_length), "min_length": int(space.min_length)}
            return {"type": "Text", **lengths, "charset": "".join(space.character_list)}
        if isinstance(space, (kinds.Tuple, kinds.OneOf)):
            kind = "Tuple" if isinstance(space, kinds.Tuple) else "OneOf"
            return {"type": kind, "spaces": [self.describe(part) for part in space.spaces]}
        if isinstance(space, kinds.Dict):
            return {"type": "Dict", "spaces": {str(name): self.describe(part) for name, part in space.spaces.items()}}
        if isinstance(space, kinds.Sequence):
            return {"type": "Sequence", "space": self.describe(space.feature_space)}
        if isinstance(space.sample(), str):
            return {"type": "Text", "max_length": 8192, "min_length": 0, "charset": self.PRINTABLE}
        raise TypeError(f"{type(space).__name__} spaces cannot cross the bridge; wrap the environment to give another")

    def encode(self, space, value):
        kinds = self.spaces
        if isinstance(space, kinds.Tuple):
            return [self.encode(part, item) for part, item in zip(space.spaces, value, strict=True)]
        if isinstance(space, kinds.OneOf):
            return [int(value[0]), self.encode(space.spaces[int(value[0])], value[1])]
        if isinstance(space, kinds.Dict):
            return {str(name): self.encode(part, value[name]) for name, part in space.spaces.items()}
        if isinstance(space, kinds.Sequence):
            items = self.utils.iterate(space.stacked_feature_space, value) if space.stack else value
            return [self.encode(space.feature_space, item) for item in items]
        if isinstance(value, str):
            return str(value)
        if isinstance(space, kinds.Discrete):
            return number(int(value))
        return nested(self.numpy.asarray(value, dtype=space.dtype).tolist())

    def decode(self, space, value):
        kinds = self.spaces
        if isinstance(space, kinds.Discrete):
            return space.dtype.type(value)
        if isinstance(space, kinds.Tuple):
            return tuple(self.decode(part, item) for part, item in zip(space.spaces, value, strict=True))
        if isinstance(space, kinds.OneOf):
            return (value[0], self.decode(space.spaces[value[0]], value[1]))
        if isinstance(space, kinds.Dict):
            return {name: self.decode(part, value[str(name)]) for name, part in space.spaces.items()}
        if isinstance(space, kinds.Sequence):
            items = tuple(self.decode(space.feature_space, item) for item in value)
            if not space.stack:
                return items
            empty = self.utils.create_empty_array(space.feature_space, len(items))
            return self.utils.concatenate(space.feature_space, items, empty)
        if isinstance(value, str):
            return value
        return self.numpy.array(value, dtype=space.dtype).reshape(space.shape)

    def plain(self, value, above=()):
        """An info of an environment: what JSON can say of it, the rest as text."""
        if isinstance(value, (dict, list, tuple, set, frozenset, collections.deque)):
            if len(above) == MAX_INFO_DEPTH or any(value is outer for outer in above):
                return f"<{type(value).__name__}>"
            within = (*above, value)
            if isinstance(value, dict):
                return {str(name): self.plain(item, within) for name, item in value.items()}
            return [self.plain(item, within) for item in value]
        if isinstance(value, (self.numpy.ndarray, self.numpy.generic)) and value.dtype.kind in "mM":
            # Python's own types have no nanoseconds.
            value = value.astype(str)
        if isinstance(value, self.numpy.ndarray):
            return self.plain(value.tolist(), above)
        value = value.item() if isinstance(value, self.numpy.generic) else value
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return value if abs(value) <= MAX_INTEGER else str(value)
        if isinstance(value, (float, self.numpy.floating)):
            return number(value)
        try:
            return str(value)
        except Exception:
            return f"<{type(value).__name__}>"

    def reward(self, value):
        """The reward of a step; an array of one number is that number."""
        array = self.numpy.asarray(value, dtype=float)
        if array.size != 1:
            raise TypeError(f"the reward {value} is not one number; wrap the environment to give one, such as a weighted sum")
        return number(array.item())


class Bridge:
    def open(self, params):
        import gymnasium
        import numpy

        for module in params.get("modules", []):
            importlib.import_module(module)
        # Constructors need not have a parameter for what was not asked for.
        mode = {} if params.get("renderMode") is None else {"render_mode": params["renderMode"]}
        self.env = gymnasium.make(params["env"], **mode, **params.get("options", {}))
        self.codec = Codec(numpy, gymnasium.spaces, gymnasium.vector.utils)
        return {
            "protocol": PROTOCOL,
            "gymnasium": gymnasium.__version__,
            "observationSpace": self.codec.describe(self.env.observation_space),
            "actionSpace": self.codec.describe(self.env.action_space),
            "renderFps": self.env.metadata.get("render_fps"),
        }

    def observed(self, observation, info):
        observation = self.codec.encode(self.env.observation_space, observation)
        return {"observation": observation, "info": self.codec.plain(info)}

    def reset(self, params):
        seed = params.get("seed")
        seed = None if seed is None else int(seed)
        result = self.env.reset(seed=seed, options=params.get("options"))
        return self.observed(*unpack("reset", result, ("observation", "info")))

    def step(self, params):
        action = self.codec.decode(self.env.action_space, params["action"])
        names = ("observation", "reward", "terminated", "truncated", "info")
        observation, reward, terminated, truncated, info = unpack("step", self.env.step(action), names)
        ending = {"terminated": bool(terminated), "truncated": bool(truncated)}
        return {**self.observed(observation, info), "reward": self.codec.reward(reward), **ending}

    def render(self, _params):
        frame = self.env.render()
        if isinstance(frame, str):
            return {"text": frame}
        pixels = self.codec.numpy.ascontiguousarray(frame, dtype="uint8")
        data = base64.b64encode(pixels.tobytes()).decode()
        return {"width": pixels.shape[1], "height": pixels.shape[0], "data": data}

    def close(self, _params):
        self.env.close()
        return {}


class GameBridge(Bridge):
    """A game of PettingZoo's AEC API: agents move in turn, and an answer names the seat that moves next."""

    def open(self, params):
        import gymnasium
        import numpy

        module = importlib.import_module(params["env"])
        mode = {} if params.get("renderMode") is None else {"render_mode": params["renderMode"]}
        self.env = module.env(**mode, **params.get("options", {}))
        self.agents = list(self.env.possible_agents)
        self.codec = Codec(numpy, gymnasium.spaces, gymnasium.vector.utils)
        spaces = [self.spaces_of(agent) for agent in self.agents]
        descriptions = [tuple(map(self.codec.describe, pair)) for pair in spaces]
        if any(each != descriptions[0] for each in descriptions):
            raise TypeError("agents with different spaces cannot cross the bridge; wrap the game to give them the same")
        self.observation_space, self.action_space = spaces[0]
        observation, action = descriptions[0]
        return {
            "protocol": PROTOCOL,
            "gymnasium": gymnasium.__version__,
            "seats": len(self.agents),
            "observationSpace": observation,
            "actionSpace": action,
            "renderFps": self.env.metadata.get("render_fps"),
        }

    def spaces_of(self, agent):
        space = self.env.observation_space(agent)
        masked = isinstance(space, self.codec.spaces.Dict) and "action_mask" in space.spaces
        return (space["observation"] if masked else space), self.env.action_space(agent)

    def is_over(self, agent):
        return self.env.terminations[agent] or self.env.truncations[agent]

    def turn(self, rewards):
        """What the next seat sees. Agents that are out of the game take the step without an action that AEC wants."""
        while self.env.agents and self.is_over(self.env.agent_selection):
            self.env.step(None)
        terminated = not self.env.agents and not self.truncated
        result = {"rewards": rewards, "terminated": terminated, "truncated": not self.env.agents and self.truncated}
        if not self.env.agents:
            return {**result, "seat": None, "observation": None, "info": {}}
        agent = self.env.agent_selection
        observation, _reward, _terminated, _truncated, info = self.env.last()
        mask = info.get("action_mask")
        if isinstance(observation, dict) and "action_mask" in observation:
            mask, observation = observation["action_mask"], observation["observation"]
        plain = self.codec.plain({name: value for name, value in info.items() if name != "action_mask"})
        if mask is not None:
            start = int(getattr(self.action_space, "start", 0))
            plain["legalActions"] = [start + action for action, legal in enumerate(mask) if legal]
        observation = self.codec.encode(self.observation_space, observation)
        return {**result, "seat": self.agents.index(agent), "observation": observation, "info": plain}

    def reset(self, params):
        seed = params.get("seed")
        self.truncated = False
        self.env.reset(seed=None if seed is None else int(seed), options=params.get("options"))
        return self.turn([0.0 for _ in self.agents])

    def step(self, params):
        self.env.step(self.codec.decode(self.action_space, params["action"]))
        rewards = [self.codec.reward(self.env.rewards.get(agent, 0)) for agent in self.agents]
        self.truncated = any(self.env.truncations.values()) and not any(self.env.terminations.values())
        return self.turn(rewards)


def read_lines(lines):
    """Lines go to the queue; without the other end there is nothing to do, whatever the environment is busy with."""
    for line in requests:
        lines.put(line)
    os._exit(0)


def main():
    bridge = Bridge()
    lines = queue.Queue()
    threading.Thread(target=read_lines, args=(lines,), daemon=True).start()
    while True:
        request = json.loads(lines.get())
        try:
            if request["method"] == "open" and request["params"].get("api") == "pettingzoo":
                bridge = GameBridge()
            handle = {name: getattr(bridge, name) for name in ("open", "reset", "step", "render", "close")}
            result = handle[request["method"]](request.get("params", {}))
            reply = json.dumps({"id": request["id"], "result": result}, allow_nan=False)
        except (Exception, SystemExit) as error:
            details = {"type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
            reply = json.dumps({"id": request["id"], "error": details})
        replies.write(reply + "\n")
        replies.flush()


main()
