"""Gymnasium's side of `npm run bench -- envs`: steps of an environment as `gymnasium.make` gives it.

usage: envs.py      requests on standard input (protocol.py)
"""

import gymnasium

from protocol import serve, timed


def play(env, actions):
    step, reset = env.step, env.reset
    for action in actions:
        _, _, terminated, truncated, _ = step(action)
        if terminated or truncated:
            reset()


def handle(request):
    env = gymnasium.make(request["id"])
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(request["steps"])]

    def work():
        env.reset(seed=0)
        play(env, actions)

    return {"seconds": timed(work, request["repeat"]), "count": request["steps"]}


serve(handle)
