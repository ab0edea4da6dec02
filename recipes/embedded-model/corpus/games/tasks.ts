import { BanditEnv, make } from "../../../../src/envs.js";
import type { RandomStream } from "../../../../src/core/random/random-stream.js";
import { INTEGER_STYLE } from "../number-text.js";
import { makeQuantity } from "../quantities.js";
import type { ScenarioSampler, ObservationSample } from "./game.js";
import { recordObservations } from "./played.js";

/** Episodes of each environment that are played at random, and for how many steps. */
const EPISODES = 40;
const STEPS = 25;

/** The tasks: bandits, Sokoban, 2048, a shop, number guessing, a calculator. */
export function taskScenarios(): readonly ScenarioSampler[] {
  const played = ["Sokoban-v0", "TwentyFortyEight-v0", "WebShop-v0"].map(recordedScenario);
  return [bandit, bandit, bandit, ...played, guessNumber(), bullsAndCows(), calculator()];
}

const bandit: ScenarioSampler = (random) => {
  const arms = random.choice([2, 2, 3, 4, random.integers(2, 9)]);
  const pulls = random.integers(1, 21);
  const { text: form } = new BanditEnv({ arms, pulls });
  const validCompletions = form.choices as readonly string[];
  return {
    id: "Bandit-v0",
    system: form.systemPrompt,
    observe: (random) => {
      const record = Array.from({ length: arms }, () => ({ pulls: 0, coins: 0 }));
      for (let left = random.integers(0, pulls); left > 0; left--) {
        const arm = random.choice(record);
        arm.pulls++;
        arm.coins += random.integers(2);
      }
      const text = form.formatObservation(Int32Array.from(record.flatMap(({ pulls, coins }) => [pulls, coins])), {});
      const quantities = record.flatMap(({ pulls, coins }, i) => {
        const pulled = makeQuantity(`the pulls of ${validCompletions[i]}`, pulls, [0, 20], INTEGER_STYLE);
        return pulls === 0
          ? []
          : [pulled, makeQuantity(`the coins of ${validCompletions[i]}`, coins, [0, 20], INTEGER_STYLE)];
      });
      return { text, validCompletions, quantities };
    },
  };
};

function recordedScenario(id: string): ScenarioSampler {
  const env = make(id);
  const moments = recordObservations(env, EPISODES, STEPS);
  const { systemPrompt } = env.text!;
  return () => ({
    id,
    system: systemPrompt,
    observe: (random) => {
      const { text, validCompletions } = random.choice(moments);
      const listed = { skill: "lists", question: "What is the first command?", answer: validCompletions[0] };
      return { text, validCompletions, facts: id === "WebShop-v0" ? [listed] : [] };
    },
  });
}

/** A game of one environment whose observations are drawn. */
function sampledScenario(
  id: string,
  draw: (random: RandomStream) => Omit<ObservationSample, "text"> & { observation: unknown },
): ScenarioSampler {
  const form = make(id).text!;
  return () => ({
    id,
    system: form.systemPrompt,
    observe: (random) => {
      const { observation, ...moment } = draw(random);
      return { ...moment, text: form.formatObservation(observation, {}) };
    },
  });
}

function guessNumber(): ScenarioSampler {
  const validCompletions = Array.from({ length: 100 }, (_, i) => `${i + 1}`);
  return sampledScenario("GuessNumber-v0", (random) => {
    const bounds = [random.integers(1, 101), random.integers(1, 101)].sort((a, b) => a - b);
    const [low, high] = bounds;
    const named = ["the lowest number", "the highest number"];
    const quantities =
      low === high ? [] : bounds.map((bound, i) => makeQuantity(named[i], bound, [1, 100], INTEGER_STYLE));
    return { observation: [low, high, random.integers(1, 8)], validCompletions, quantities };
  });
}

function bullsAndCows(): ScenarioSampler {
  const digits = (random: RandomStream) => random.sampleIndices(10, 4).join("");
  return sampledScenario("BullsAndCows-v0", (random) => {
    const guesses = Array.from({ length: random.integers(0, 4) }, () => {
      const bulls = random.integers(0, 4);
      return `${digits(random)}: ${bulls} bulls, ${random.integers(0, 4 - bulls)} cows`;
    });
    return { observation: guesses.join("\n"), validCompletions: [digits(random)] };
  });
}

function calculator(): ScenarioSampler {
  return sampledScenario("Calculator-v0", (random) => {
    const [a, b, c] = [random.integers(1, 1000), random.integers(1, 100), random.integers(1, 1000)];
    const expression = random.choice([`${a} + ${b}`, `${a} * ${b} + ${c}`, `${a} - ${b}`, `(${a} + ${c}) * ${b}`]);
    const validCompletions = [`calculate ${expression}`, `answer ${random.integers(0, 1000)}`];
    return { observation: `What is ${expression}?`, validCompletions };
  });
}
