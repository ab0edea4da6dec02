import { make } from "../../../src/envs/index.js";
import type { RandomStream } from "../../../src/tensor/random.js";
import { playedMoments, type PlayedMoment } from "./played-scenes.js";
import type { Fact, Scene } from "./scene.js";

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

/** Houses and games of each size that are played, and for how many moves. */
const HOUSES = [
  { rooms: 2, objects: 4, questLength: 2 },
  { rooms: 3, objects: 6, questLength: 3 },
  { rooms: 5, objects: 10, questLength: 5 },
];
const GAMES = 150;
const MOVES = 12;

/** Draws scenes of text adventures that were played at random. */
export function textWorldScenes(): ((random: RandomStream) => Scene)[] {
  const envs = HOUSES.map((options) => make("TextWorld-v0", options));
  const moments = envs.flatMap((env) => playedMoments(env, GAMES, MOVES));
  const { systemPrompt } = envs[0].text!;
  return [
    (random) => {
      const moment = random.choice(moments);
      const own = random.random() < 0.6;
      return {
        game: "TextWorld-v0",
        system: own ? systemPrompt : `${random.choice(OPENINGS)} ${random.choice(ENDINGS)}`,
        text: moment.text,
        replies: moment.replies,
        facts: facts(moment, random),
      };
    },
  ];
}

function facts({ observation, info, replies }: PlayedMoment, random: RandomStream): Fact[] {
  const yes = (truth: boolean) => (truth ? "yes" : "no");
  const found: Fact[] = [
    { skill: "lists", question: "What is the first command?", answer: replies[0] },
    { skill: "lists", question: "What is the last command?", answer: replies.at(-1)! },
    ...["north", "south", "east", "west"].map((side) => ({
      skill: "lists",
      question: `Can you go ${side}?`,
      answer: yes(replies.includes(`go ${side}`)),
    })),
  ];
  const room = /== (.+) ==/.exec(observation as string)?.[1];
  if (room !== undefined) found.push({ skill: "look up", question: "Where are you?", answer: room.toLowerCase() });
  const inventory = String(info.inventory).trim();
  if (inventory !== "") {
    found.push({ skill: "lists", question: "Are you carrying anything?", answer: yes(!/nothing/.test(inventory)) });
  }
  const command = random.choice(replies);
  found.push({ skill: "copy", question: `Say: ${command}`, answer: command });
  return found;
}
