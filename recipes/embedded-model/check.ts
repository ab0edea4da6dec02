import { AutoModelForCausalLM } from "../../src/generation/auto.js";
import { RandomStream } from "../../src/tensor/random.js";
import type { Conversation } from "./corpus/conversation.js";
import { Corpus } from "./corpus/corpus.js";
import { actionScores, skillScores } from "./evaluate.js";

const folder = process.argv[2] ?? "models/llamagym-1m";
const model = await AutoModelForCausalLM.fromPretrained(folder, { device: "cpu", threads: 1 });
const corpus = Corpus.create();
const random = new RandomStream(12345);
const conversations: Conversation[] = [];
while (conversations.length < Number(process.argv[3] ?? 800)) conversations.push(...corpus.draw(random));
for (const { skill, accuracy, questions } of await skillScores(model, conversations)) {
  console.log(`${skill.padEnd(32)} ${accuracy.toFixed(3)} of ${questions}`);
}
const scenes = Array.from({ length: 300 }, () => corpus.drawScene(random)).filter(
  ({ replies }) => replies.length <= 12,
);
for (const { game, inForm, unevenness, scenes: count } of await actionScores(model, scenes)) {
  console.log(`${game.padEnd(24)} in form ${inForm.toFixed(3)} uneven ${unevenness.toFixed(3)} of ${count}`);
}
await model.close();
