import { make, type Env } from "../../../src/envs/index.js";
import type { RandomStream } from "../../../src/tensor/random.js";
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

/** Draws scenes of text adventures by playing them at random, each game for some moves. */
export function textWorldScenes(): ((random: RandomStream) => Scene)[] {
  const envs = [
    { rooms: 2, objects: 4, questLength: 2 },
    { rooms: 3, objects: 6, questLength: 3 },
    { rooms: 5, objects: 10, questLength: 5 },
  ].map((options) => make("TextWorld-v0", options));
  const games = envs.map((env) => new RandomGame(env as Env<string, string>));
  return [(random) => random.choice(games).next(random)];
}

class RandomGame {
  private current: { observation: string; info: Record<string, unknown> } | undefined;

  constructor(private readonly env: Env<string, string>) {}

  next(random: RandomStream): Scene {
    if (this.current === undefined || random.random() < 0.03) {
      this.current = this.env.reset({ seed: random.integers(2 ** 31) }) as {
        observation: string;
        info: Record<string, unknown>;
      };
    }
    const { observation, info } = this.current;
    const commands = info.admissibleCommands as readonly string[];
    const form = this.env.text!;
    const own = random.random() < 0.6;
    const scene: Scene = {
      game: "TextWorld-v0",
      system: own ? form.systemPrompt : `${random.choice(OPENINGS)} ${random.choice(ENDINGS)}`,
      text: form.formatObservation(observation, info),
      replies: commands,
      facts: facts(observation, info, random),
    };
    const step = this.env.step(random.choice(commands)) as {
      observation: string;
      info: Record<string, unknown>;
      terminated: boolean;
      truncated: boolean;
    };
    this.current = step.terminated || step.truncated ? undefined : step;
    return scene;
  }
}

function facts(observation: string, info: Record<string, unknown>, random: RandomStream): Fact[] {
  const commands = info.admissibleCommands as readonly string[];
  const yes = (truth: boolean) => (truth ? "yes" : "no");
  const found: Fact[] = [
    { skill: "lists", question: "What is the first command?", answer: commands[0] },
    { skill: "lists", question: "What is the last command?", answer: commands.at(-1)! },
    ...["north", "south", "east", "west"].map((side) => ({
      skill: "lists",
      question: `Can you go ${side}?`,
      answer: yes(commands.includes(`go ${side}`)),
    })),
  ];
  const room = /== (.+) ==/.exec(observation)?.[1];
  if (room !== undefined) found.push({ skill: "look up", question: "Where are you?", answer: room.toLowerCase() });
  const inventory = String(info.inventory).trim();
  if (inventory !== "") {
    found.push({ skill: "lists", question: "Are you carrying anything?", answer: yes(!/nothing/.test(inventory)) });
  }
  const command = random.choice(commands);
  found.push({ skill: "copy", question: `Say: ${command}`, answer: command });
  return found;
}
