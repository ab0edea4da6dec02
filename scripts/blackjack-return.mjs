// node scripts/blackjack-return.mjs ADAPTER...: the exact return of greedy play in Blackjack-v1 under
// adapters or checkpoints, from the action that each chooses in each of the observations.
import { AutoModelForCausalLM } from "../dist/index.js";
import { make } from "../dist/envs.js";
import { computeBlackjackReturn } from "../dist/envs/solvers/blackjack-solver.js";

const { text } = make("Blackjack-v1");
const observations = [];
for (let sum = 4; sum <= 21; sum++)
  for (let dealer = 1; dealer <= 10; dealer++)
    for (const ace of sum < 12 ? [0] : [0, 1]) observations.push([sum, dealer, ace]);

for (const folder of process.argv.slice(2)) {
  const model = await AutoModelForCausalLM.fromPretrained(folder, { threads: 1 });
  const actions = new Map();
  await Promise.all(
    observations.map(async (observation) => {
      const messages = [
        { role: "system", content: text.systemPrompt },
        { role: "user", content: text.formatObservation(observation, {}) },
      ];
      const completion = await model.generate(messages, { choices: text.choices, temperature: 0 });
      actions.set(observation.join(), text.parseAction(completion.text));
    }),
  );
  const policy = (sum, dealer, ace) => actions.get([sum, dealer, Number(ace)].join());
  console.log(folder, computeBlackjackReturn({ sab: true, natural: false }, policy).toFixed(4));
  await model.close();
}
