"""Writes the data of the recipes: make_data.py FOLDER

conversations.jsonl  sums, guesses of a number and moves of TicTacToe, in the forms that the recipes' environments ask for
comparisons.jsonl    pairs of answers, of which the shorter one is preferred
"""
import json, random, re, sys
from pathlib import Path

import textarena
from tinker_cookbook.recipes.multiplayer_rl.guess_number.env import SYSTEM_PROMPT

folder = Path(sys.argv[1])
draw = random.Random(0)
say = lambda role, content: {"role": role, "content": content}
conversations = []
for _ in range(120):
    a, b = draw.randint(0, 100), draw.randint(0, 100)
    answer = draw.choice([a + b, draw.randint(0, 200)])
    conversations.append([say("user", "What is 4 + 5?"), say("assistant", "9"), say("user", f"What is {a} + {b}?"), say("assistant", str(answer))])
for _ in range(60):
    turns = [say("system", SYSTEM_PROMPT)]
    for _ in range(draw.randint(1, 2)):
        reply = f"Guess: {draw.randint(0, 1024)}" if draw.random() < 0.7 else "Too low"
        turns += [say("assistant", reply), say("user", draw.choice(["Too low", "Too high"]))]
    conversations.append(turns[:-1])
for seed in range(60):
    env = textarena.make(env_id="TicTacToe-v0")
    env.reset(num_players=2, seed=seed)
    for _ in range(draw.randint(0, 1)):
        env.step(f"[{draw.randrange(9)}]")
    observation = env.get_observation()[1]
    conversations.append([say("user", observation), say("assistant", f"[{draw.randrange(9)}]")])
draw.shuffle(conversations)
(folder / "conversations.jsonl").write_text("".join(json.dumps({"messages": each}) + "\n" for each in conversations))

comparisons = []
for i in range(32):
    a, b = draw.randint(0, 9), draw.randint(0, 9)
    pair = [[say("assistant", str(a + b))], [say("assistant", f"I think that it is {a + b} or more")]]
    comparison = {"prompt_conversation": [say("user", f"What is {a} + {b}?")], "completion_A": pair[i % 2], "completion_B": pair[1 - i % 2]}
    comparisons.append({"comparison": comparison, "label": "AB"[i % 2]})
(folder / "comparisons.jsonl").write_text("".join(json.dumps(each) + "\n" for each in comparisons))
