/**
 * Preferences without a reward: `npm run example -- preferences [--episodes N] [--model MODEL]
 * [--device DEVICE] [--seed N]`. Each pair is one blackjack deal that was played twice from the
 * same cards, once with a hit and once with a stay; the answer of the game that went better is
 * preferred. `--episodes` is the number of pairs. A pair is noisy, as people's preferences are:
 * luck decides many of them.
 */
import { AutoModelForCausalLM, getPeftModel, make, type ChatMessage } from "llamagym";
import { DpoTrainer, type PreferenceExample } from "llamagym/preferences";
import { parseOptions } from "./options.js";

type Observation = readonly [sum: number, dealer: number, usableAce: number];
type Policy = (observation: Observation) => "hit" | "stay";

const { episodes: pairs, model: name, device, isEmbedded, seed: runSeed } = parseOptions({ episodes: 8000, seed: 1 });
const env = make<Observation, number>("Blackjack-v1");

const ask = ([sum, dealer, ace]: Observation): ChatMessage[] => [
  { role: "system", content: "You are an expert blackjack player. Answer hit to take another card or stay to stop." },
  {
    role: "user",
    content: `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`,
  },
];

/** Plays the deal of a seed and returns its outcome: 1 won, 0 drawn, -1 lost. */
async function play(seed: number, policy: Policy): Promise<number> {
  let { observation } = await env.reset({ seed });
  for (;;) {
    const step = await env.step(policy(observation) === "hit" ? 1 : 0);
    if (step.terminated || step.truncated) return Math.sign(step.reward);
    observation = step.observation;
  }
}

/** Collects pairs of answers to the first question of a deal, or to the one after a hit. */
async function collectPairs(count: number): Promise<PreferenceExample[]> {
  const examples: PreferenceExample[] = [];
  for (let seed = 1_000_000 * runSeed; examples.length < count; seed++) {
    const asked = seed % 2;
    let question: Observation | undefined;
    const answer = (given: "hit" | "stay"): Policy => {
      let turn = 0;
      return (observation) => {
        if (turn++ < asked) return "hit";
        if (turn > asked + 1) return observation[0] < 17 ? "hit" : "stay";
        question = observation;
        return given;
      };
    };
    const [hit, stay] = [await play(seed, answer("hit")), await play(seed, answer("stay"))];
    if (question === undefined || hit === stay) continue;
    const [chosen, rejected] = hit > stay ? ["hit", "stay"] : ["stay", "hit"];
    const toAnswer = (content: string): ChatMessage[] => [{ role: "assistant", content }];
    examples.push({ prompt: ask(question), chosen: toAnswer(chosen), rejected: toAnswer(rejected) });
  }
  return examples;
}

const base = await AutoModelForCausalLM.fromPretrained(name, { device });
const model = await getPeftModel(base, { r: 16, seed: runSeed });

/** Reads the model's answer, the more probable one, to every question of a deal. */
async function readPolicy(): Promise<Policy> {
  const answers = new Map<string, "hit" | "stay">();
  for (let sum = 4; sum <= 21; sum++)
    for (let dealer = 1; dealer <= 10; dealer++)
      for (const ace of [0, 1]) {
        const { probabilities } = await model.choose(ask([sum, dealer, ace]), ["hit", "stay"]);
        answers.set(`${sum},${dealer},${ace}`, (probabilities[0] ?? 0) > 0.5 ? "hit" : "stay");
      }
  return ([sum, dealer, ace]) => answers.get(`${sum},${dealer},${ace}`)!;
}

const before = await readPolicy();
const train = await collectPairs(pairs);
const trainer = await DpoTrainer.create(model, {
  train,
  beta: 0.1,
  learningRate: isEmbedded ? 1e-3 : 1e-4,
  numTrainEpochs: 1,
  batchSize: 64,
  seed: runSeed,
});
await trainer.train({
  onStep: ({ step, loss, "rewards/accuracies": accuracy }) => {
    if (step % 10 === 0) console.log(`step ${step}: loss ${loss.toFixed(3)}, reward accuracy ${accuracy.toFixed(2)}`);
  },
});
const after = await readPolicy();

/** Returns the fraction of unseen deals with different outcomes that the first policy wins. */
async function compare(a: Policy, b: Policy): Promise<number> {
  let [won, decided] = [0, 0];
  for (let seed = 0; seed < 10_000; seed++) {
    const difference = (await play(seed, a)) - (await play(seed, b));
    if (difference > 0) won++;
    if (difference !== 0) decided++;
  }
  return won / decided;
}

env.actionSpace.seed(runSeed);
const random: Policy = () => (env.actionSpace.sample() === 1 ? "hit" : "stay");
const dealer: Policy = ([sum]) => (sum < 17 ? "hit" : "stay");
for (const [opponent, policy] of Object.entries({ "random answers": random, "a hit below 17": dealer })) {
  const [first, last] = [await compare(before, policy), await compare(after, policy)];
  console.log(`win rate against ${opponent}: ${first.toFixed(3)} before, ${last.toFixed(3)} after ${pairs} pairs`);
}
await model.close();
