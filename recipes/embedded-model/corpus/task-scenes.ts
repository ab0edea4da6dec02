import { BanditEnv, make } from "../../../src/envs/index.js";
import type { RandomStream } from "../../../src/tensor/random.js";
import { playedMoments } from "./played-scenes.js";
import type { Fact, Scene } from "./scene.js";

/** Draws scenes of the tasks: bandits, Sokoban, 2048, number guessing, word guessing, a calculator, a shop. */
export function taskScenes(): ((random: RandomStream) => Scene)[] {
  const played = ["Sokoban-v0", "TwentyFortyEight-v0", "WebShop-v0"].map(playedScenes);
  return [bandit, bandit, ...played, guessNumber(), bullsAndCows(), calculator()];
}

function bandit(random: RandomStream): Scene {
  const arms = random.choice([2, 2, 3, 4, random.integers(2, 9)]);
  const pulls = random.integers(1, 21);
  const { text } = new BanditEnv({ arms, pulls });
  const counts = Array.from({ length: arms }, () => 0);
  const coins = [...counts];
  for (let left = random.integers(0, pulls); left > 0; left--) {
    const arm = random.integers(arms);
    counts[arm]++;
    coins[arm] += random.integers(2);
  }
  const names = text.choices as readonly string[];
  const arm = random.integers(arms);
  const facts: Fact[] = [
    { skill: "look up", question: `How many coins did ${names[arm]} pay?`, answer: `${coins[arm]}` },
    { skill: "look up", question: `How often was ${names[arm]} pulled?`, answer: `${counts[arm]}` },
  ];
  return {
    game: "Bandit-v0",
    system: text.systemPrompt,
    text: text.formatObservation(Int32Array.from(counts.flatMap((count, i) => [count, coins[i]])), {}),
    replies: names,
    facts: counts[arm] > 0 ? facts : facts.slice(1),
  };
}

/** Episodes of each environment that are played, and for how many steps. */
const EPISODES = 40;
const STEPS = 25;

/** Scenes of an environment that was played at random. */
function playedScenes(id: string): (random: RandomStream) => Scene {
  const env = make(id);
  const moments = playedMoments(env, EPISODES, STEPS);
  const { systemPrompt } = env.text!;
  return (random) => {
    const { text, replies } = random.choice(moments);
    return { game: id, system: systemPrompt, text, replies };
  };
}

function guessNumber(): (random: RandomStream) => Scene {
  const form = make("GuessNumber-v0").text!;
  return (random) => {
    const [a, b] = [random.integers(1, 101), random.integers(1, 101)];
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    return {
      game: "GuessNumber-v0",
      system: form.systemPrompt,
      text: form.formatObservation([low, high, random.integers(1, 8)], {}),
      replies: Array.from({ length: 100 }, (_, i) => `${i + 1}`),
      facts: [
        { skill: "copy", question: "What is the lowest it can be?", answer: `${low}` },
        { skill: "copy", question: "What is the highest it can be?", answer: `${high}` },
      ],
    };
  };
}

function bullsAndCows(): (random: RandomStream) => Scene {
  const form = make("BullsAndCows-v0").text!;
  const digits = (random: RandomStream) => random.sampleIndices(10, 4).join("");
  return (random) => {
    const guesses = Array.from({ length: random.integers(0, 4) }, () => {
      const bulls = random.integers(0, 4);
      return `${digits(random)}: ${bulls} bulls, ${random.integers(0, 4 - bulls)} cows`;
    });
    return {
      game: "BullsAndCows-v0",
      system: form.systemPrompt,
      text: form.formatObservation(guesses.join("\n"), {}),
      replies: [digits(random)],
    };
  };
}

function calculator(): (random: RandomStream) => Scene {
  const form = make("Calculator-v0").text!;
  return (random) => {
    const [a, b, c] = [random.integers(1, 1000), random.integers(1, 100), random.integers(1, 1000)];
    const expression = random.choice([`${a} + ${b}`, `${a} * ${b} + ${c}`, `${a} - ${b}`, `(${a} + ${c}) * ${b}`]);
    return {
      game: "Calculator-v0",
      system: form.systemPrompt,
      text: form.formatObservation(`What is ${expression}?`, {}),
      replies: [`calculate ${expression}`, `answer ${random.integers(0, 1000)}`],
    };
  };
}
