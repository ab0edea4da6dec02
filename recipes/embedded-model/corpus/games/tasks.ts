import { BanditEnv, make } from "../../../../src/envs/index.js";
import type { RandomStream } from "../../../../src/tensor/random.js";
import { WHOLE } from "../number-text.js";
import { quantity } from "../quantities.js";
import type { DrawGame, Moment } from "./game.js";
import { playedMoments } from "./played.js";

/** Episodes of each environment that are played at random, and for how many steps. */
const EPISODES = 40;
const STEPS = 25;

/** The tasks: bandits, Sokoban, 2048, a shop, number guessing, a calculator. */
export function taskGames(): readonly DrawGame[] {
  const played = ["Sokoban-v0", "TwentyFortyEight-v0", "WebShop-v0"].map(playedGame);
  return [bandit, bandit, bandit, ...played, guessNumber(), bullsAndCows(), calculator()];
}

const bandit: DrawGame = (random) => {
  const arms = random.choice([2, 2, 3, 4, random.integers(2, 9)]);
  const pulls = random.integers(1, 21);
  const { text: form } = new BanditEnv({ arms, pulls });
  const replies = form.choices as readonly string[];
  return {
    id: "Bandit-v0",
    system: form.systemPrompt,
    moment: (random) => {
      const record = Array.from({ length: arms }, () => ({ pulls: 0, coins: 0 }));
      for (let left = random.integers(0, pulls); left > 0; left--) {
        const arm = random.choice(record);
        arm.pulls++;
        arm.coins += random.integers(2);
      }
      const text = form.formatObservation(Int32Array.from(record.flatMap(({ pulls, coins }) => [pulls, coins])), {});
      const quantities = record.flatMap(({ pulls, coins }, i) => {
        const pulled = quantity(`the pulls of ${replies[i]}`, pulls, [0, 20], WHOLE);
        return pulls === 0 ? [] : [pulled, quantity(`the coins of ${replies[i]}`, coins, [0, 20], WHOLE)];
      });
      return { text, replies, quantities };
    },
  };
};

function playedGame(id: string): DrawGame {
  const env = make(id);
  const moments = playedMoments(env, EPISODES, STEPS);
  const { systemPrompt } = env.text!;
  return () => ({
    id,
    system: systemPrompt,
    moment: (random) => {
      const { text, replies } = random.choice(moments);
      const listed = { skill: "lists", question: "What is the first command?", answer: replies[0] };
      return { text, replies, facts: id === "WebShop-v0" ? [listed] : [] };
    },
  });
}

/** A game of one environment whose observations are drawn. */
function drawnGame(
  id: string,
  draw: (random: RandomStream) => Omit<Moment, "text"> & { observation: unknown },
): DrawGame {
  const form = make(id).text!;
  return () => ({
    id,
    system: form.systemPrompt,
    moment: (random) => {
      const { observation, ...moment } = draw(random);
      return { ...moment, text: form.formatObservation(observation, {}) };
    },
  });
}

function guessNumber(): DrawGame {
  const replies = Array.from({ length: 100 }, (_, i) => `${i + 1}`);
  return drawnGame("GuessNumber-v0", (random) => {
    const bounds = [random.integers(1, 101), random.integers(1, 101)].sort((a, b) => a - b);
    const [low, high] = bounds;
    const named = ["the lowest number", "the highest number"];
    const quantities = low === high ? [] : bounds.map((bound, i) => quantity(named[i], bound, [1, 100], WHOLE));
    return { observation: [low, high, random.integers(1, 8)], replies, quantities };
  });
}

function bullsAndCows(): DrawGame {
  const digits = (random: RandomStream) => random.sampleIndices(10, 4).join("");
  return drawnGame("BullsAndCows-v0", (random) => {
    const guesses = Array.from({ length: random.integers(0, 4) }, () => {
      const bulls = random.integers(0, 4);
      return `${digits(random)}: ${bulls} bulls, ${random.integers(0, 4 - bulls)} cows`;
    });
    return { observation: guesses.join("\n"), replies: [digits(random)] };
  });
}

function calculator(): DrawGame {
  return drawnGame("Calculator-v0", (random) => {
    const [a, b, c] = [random.integers(1, 1000), random.integers(1, 100), random.integers(1, 1000)];
    const expression = random.choice([`${a} + ${b}`, `${a} * ${b} + ${c}`, `${a} - ${b}`, `(${a} + ${c}) * ${b}`]);
    const replies = [`calculate ${expression}`, `answer ${random.integers(0, 1000)}`];
    return { observation: `What is ${expression}?`, replies };
  });
}
