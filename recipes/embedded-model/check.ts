import { AutoModelForCausalLM } from "../../src/generation/auto-model.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import type { Conversation } from "./corpus/conversation.js";
import { Corpus } from "./corpus/corpus.js";
import { evaluateActions, evaluateSkills } from "./evaluate.js";

/** As at the end of the first stage, which trains reading. */
const READING_STAGE = 0.99;

const folder = process.argv[2] ?? "models/llamagym-1m";
const model = await AutoModelForCausalLM.fromPretrained(folder, { device: "cpu", threads: 1 });
const corpus = new Corpus();
const random = new RandomStream(12345);
const conversations: Conversation[] = [];
while (conversations.length < Number(process.argv[3] ?? 800)) conversations.push(...corpus.draw(random, READING_STAGE));
for (const { skill, accuracy, questions } of await evaluateSkills(model, conversations)) {
  console.log(`${skill.padEnd(32)} ${accuracy.toFixed(3)} of ${questions}`);
}
const games = Array.from({ length: 400 }, () => corpus.drawScenario(random));
for (const { game, inForm, unevenness, moments } of await evaluateActions(model, games, { maxActions: 12, random })) {
  console.log(`${game.padEnd(24)} in form ${inForm.toFixed(3)} uneven ${unevenness.toFixed(3)} of ${moments}`);
}
await model.close();
