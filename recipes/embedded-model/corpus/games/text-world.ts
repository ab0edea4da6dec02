import "../../../../src/text-world/index.js";
import { make } from "../../../../src/envs.js";
import type { RandomStream } from "../../../../src/core/random/random-stream.js";
import { yesOrNo, type ScenarioSampler, type Fact } from "./game.js";
import { recordObservations, type RecordedObservation } from "./played.js";

const OPENINGS = [
  "You are playing a text adventure.",
  "You play a text game.",
  "You are in a house and have something to do there.",
];
const ENDINGS = [
  "Answer with one command.",
  "Each turn you type one command. Answer with the command alone.",
  "Choose one of the commands.",
];

/** Houses whose games are played, how many of each, and for how many moves. */
const HOUSES = [
  { rooms: 2, objects: 4, questLength: 2 },
  { rooms: 3, objects: 6, questLength: 3 },
  { rooms: 5, objects: 10, questLength: 5 },
];
const GAMES = 150;
const MOVES = 12;

/** Text adventures that were played at random. */
export function textWorldScenarios(): readonly ScenarioSampler[] {
  const envs = HOUSES.map((options) => make("TextWorld-v0", options));
  const moments = envs.flatMap((env) => recordObservations(env, GAMES, MOVES));
  const { systemPrompt } = envs[0].text!;
  return [
    (random) => ({
      id: "TextWorld-v0",
      system: random.random() < 0.6 ? systemPrompt : `${random.choice(OPENINGS)} ${random.choice(ENDINGS)}`,
      observe: (random) => {
        const moment = random.choice(moments);
        return { text: moment.text, validCompletions: moment.validCompletions, facts: facts(moment, random) };
      },
    }),
  ];
}

function facts({ observation, info, validCompletions }: RecordedObservation, random: RandomStream): Fact[] {
  const command = random.choice(validCompletions);
  const found: Fact[] = [
    { skill: "lists", question: "What is the first command?", answer: validCompletions[0] },
    { skill: "lists", question: "What is the last command?", answer: validCompletions.at(-1)! },
    { skill: "lists", question: "Say all commands.", answer: validCompletions.join("; ") },
    { skill: "copy", question: `Say: ${command}`, answer: command },
    ...["north", "south", "east", "west"].map((side) => ({
      skill: "lists",
      question: `Can you go ${side}?`,
      answer: yesOrNo(validCompletions.includes(`go ${side}`)),
    })),
  ];
  const room = /== (.+) ==/.exec(observation as string)?.[1];
  if (room !== undefined) found.push({ skill: "look up", question: "Where are you?", answer: room.toLowerCase() });
  const inventory = String(info.inventory).trim();
  if (inventory !== "") {
    found.push({
      skill: "lists",
      question: "Are you carrying anything?",
      answer: yesOrNo(!inventory.includes("nothing")),
    });
  }
  return found;
}
