import type { RandomStream } from "../../../src/tensor/random.js";
import { askAboutRow, echo } from "./all-at-once.js";
import { cardScenes } from "./card-scenes.js";
import { controlScenes } from "./control-scenes.js";
import type { Conversation, Exchange } from "./conversation.js";
import { gridScenes } from "./grid-scenes.js";
import { cards, inventory, positions, wordList } from "./lists.js";
import { madeUpScene, menuScene } from "./made-up-scenes.js";
import { plainChat } from "./plain-chat.js";
import { askAbout, askAboutNumbers } from "./reading.js";
import { drawRule } from "./rules.js";
import type { Scene } from "./scene.js";
import { taskScenes } from "./task-scenes.js";
import { textWorldScenes } from "./text-world-scenes.js";

type DrawScene = (random: RandomStream) => Scene;

/** A prompt with as many replies of it as are learnt at once. */
type Draw = (random: RandomStream) => readonly Conversation[];

/** How often each kind of scene is drawn. */
const SCENE_WEIGHTS = { control: 6, cards: 3, grids: 3, textWorld: 1.5, tasks: 2, madeUp: 3, menu: 1 };

/** What the model is taught: how to answer in form, and to read what it is shown. Never which action is good. */
export class Corpus {
  private constructor(readonly drawScene: DrawScene) {}

  static create(): Corpus {
    const families: Record<keyof typeof SCENE_WEIGHTS, readonly DrawScene[]> = {
      control: controlScenes(),
      cards: cardScenes(),
      grids: gridScenes(),
      textWorld: textWorldScenes(),
      tasks: taskScenes(),
      madeUp: [madeUpScene],
      menu: [menuScene],
    };
    const names = Object.keys(families) as (keyof typeof SCENE_WEIGHTS)[];
    const pickFamily = weighted(names, (name) => SCENE_WEIGHTS[name]);
    return new Corpus((random) => random.choice(families[pickFamily(random)])(random));
  }

  /** The next conversations, usually one; several share a prompt and differ in the action that is answered. */
  readonly draw: Draw = (random) => {
    const kinds: readonly (readonly [number, Draw])[] = [
      [1.5, this.singleActions],
      [0.7, (random) => [this.play(random)]],
      [4, (random) => [this.questions(random)]],
      [2.5, (random) => [this.followRule(random)]],
      [1.5, (random) => [numberQuestions(random)]],
      [1, (random) => [passageQuestions(random)]],
      [1, (random) => [{ exchanges: Array.from({ length: random.integers(1, 4) }, () => askAboutRow(random)) }]],
      [1, (random) => [{ exchanges: Array.from({ length: random.integers(1, 4) }, () => echo(random)) }]],
      [0.1, (random) => [plainChat(random)]],
    ];
    return weighted(kinds, ([weight]) => weight)(random)[1](random);
  };

  /** One observation and an action. All actions are given together, so that none is learnt to be likelier. */
  readonly singleActions: Draw = (random) => {
    const scene = this.drawScene(random);
    const count = Math.min(scene.replies.length, 6);
    const chosen = random.sampleIndices(scene.replies.length, count);
    const bare = random.random() < 0.2;
    return chosen.map((i) => {
      const user = bare ? `${scene.system}\n${scene.text}` : scene.text;
      const exchanges = [{ skill: "action", user, assistant: scene.replies[i] }];
      return bare ? { exchanges } : { system: scene.system, exchanges };
    });
  };

  /** Some turns of one game with random actions. */
  private play(random: RandomStream): Conversation {
    const scenes = this.sameGame(random, random.integers(2, 6));
    return {
      system: scenes[0].system,
      exchanges: scenes.map(({ text, replies }) => ({
        skill: "action",
        user: text,
        assistant: random.choice(replies),
      })),
    };
  }

  /** Questions about one observation. */
  private questions(random: RandomStream): Conversation {
    for (;;) {
      const scene = this.drawScene(random);
      const exchanges: Exchange[] = [];
      const count = random.integers(2, 7);
      while (exchanges.length < count) {
        const asked = askAbout(scene, random);
        if (asked === undefined) break;
        exchanges.push(exchanges.length > 0 ? asked : { ...asked, user: `${scene.text}\n${asked.user}` });
      }
      if (exchanges.length > 0) return { ...(random.random() < 0.7 ? { system: scene.system } : {}), exchanges };
    }
  }

  /** Actions by a rule that is told: in the system prompt for several turns, or with the observation. */
  private followRule(random: RandomStream): Conversation {
    for (;;) {
      const scenes = this.sameGame(random, random.integers(1, 5));
      const rule = drawRule(scenes[0], random);
      if (rule === undefined) continue;
      const told = random.random() < 0.7;
      return {
        system: told ? `${scenes[0].system} ${rule.text}` : scenes[0].system,
        exchanges: scenes.map((scene) => ({
          skill: rule.skill,
          user: told ? scene.text : `${scene.text}\n${rule.text}`,
          assistant: rule.answer(scene),
        })),
      };
    }
  }

  /** Scenes of one game under one system prompt. */
  private sameGame(random: RandomStream, count: number): readonly Scene[] {
    const first = this.drawScene(random);
    const scenes = [first];
    for (let tries = 0; scenes.length < count && tries < 40 * count; tries++) {
      const scene = this.drawScene(random);
      const fits = scene.game === first.game && scene.replies.join() === first.replies.join();
      if (fits && first.game !== "made up") scenes.push(scene);
    }
    return scenes;
  }
}

function numberQuestions(random: RandomStream): Conversation {
  const exchanges = Array.from({ length: random.integers(1, 6) }, () => askAboutNumbers(random));
  return { ...(random.random() < 0.2 ? { system: "Answer the question." } : {}), exchanges };
}

function passageQuestions(random: RandomStream): Conversation {
  const { text, ask } = random.choice([wordList, wordList, inventory, positions, cards])(random);
  const exchanges = Array.from({ length: random.integers(2, 6) }, () => ask(random));
  exchanges[0] = { ...exchanges[0], user: `${text} ${exchanges[0].user}` };
  return { ...(random.random() < 0.2 ? { system: "Answer the question." } : {}), exchanges };
}

function weighted<T>(items: readonly T[], weightOf: (item: T) => number): (random: RandomStream) => T {
  const total = items.reduce((sum, item) => sum + weightOf(item), 0);
  return (random) => {
    let left = random.uniform(0, total);
    return items.find((item) => (left -= weightOf(item)) < 0) ?? items[items.length - 1];
  };
}
