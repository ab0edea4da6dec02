import type { RandomStream } from "../../../src/tensor/random.js";
import { askAboutRow, echo } from "./all-at-once.js";
import type { Conversation, Exchange } from "./conversation.js";
import { cardGames } from "./games/cards.js";
import { controlGames } from "./games/control.js";
import type { DrawGame, Game } from "./games/game.js";
import { gridGames } from "./games/grids.js";
import { madeUpGame, menuGame } from "./games/made-up.js";
import { taskGames } from "./games/tasks.js";
import { textWorldGames } from "./games/text-world.js";
import { cards, inventory, positions, wordList } from "./lists.js";
import { plainChat } from "./plain-chat.js";
import { askAbout, askAboutNumbers } from "./reading.js";
import { drawRule } from "./rules.js";

/** How often each family of games is drawn. */
const FAMILIES: readonly (readonly [weight: number, games: () => readonly DrawGame[]])[] = [
  [6, controlGames],
  [3, cardGames],
  [3, gridGames],
  [1, textWorldGames],
  [2, taskGames],
  [3, () => [madeUpGame]],
  [2, () => [menuGame]],
];

/** The kinds of conversations. */
type Kind = "actions" | "play" | "questions" | "rules" | "numbers" | "rows" | "echo" | "passages" | "chat";

/** How often each kind is drawn, when a share of the training is done: first mostly what there is much to learn from. */
const PHASES: readonly { readonly until: number; readonly weights: Readonly<Record<Kind, number>> }[] = [
  {
    until: 0.15,
    weights: { actions: 1, play: 0, questions: 1, rules: 0, numbers: 1, rows: 4, echo: 6, passages: 0.5, chat: 0.1 },
  },
  {
    until: 0.4,
    weights: { actions: 1, play: 0.3, questions: 4, rules: 1, numbers: 1.5, rows: 3, echo: 2, passages: 1, chat: 0.1 },
  },
  {
    until: 1,
    weights: {
      actions: 2,
      play: 0.7,
      questions: 5,
      rules: 3,
      numbers: 1.5,
      rows: 1,
      echo: 0.5,
      passages: 1,
      chat: 0.1,
    },
  },
];

/** How many actions of one observation are given at once, where there are more. */
const MOST_ACTIONS = 6;

/** What the model is taught: how to answer in form, and to read what it is shown. Never which action is good. */
export class Corpus {
  private readonly families = FAMILIES.map(([weight, games]) => [weight, games()] as const);

  /** The next conversations, usually one; several have one prompt and differ in the action. `done` is 0 to 1. */
  draw(random: RandomStream, done = 1): readonly Conversation[] {
    const { weights } = PHASES.find(({ until }) => done < until) ?? PHASES[PHASES.length - 1];
    const kind = weightedChoice(Object.entries(weights) as [Kind, number][], ([, weight]) => weight, random)[0];
    switch (kind) {
      case "actions":
        return this.actions(random);
      case "play":
        return [this.play(random)];
      case "questions":
        return [this.questions(random)];
      case "rules":
        return [this.followRule(random)];
      case "numbers":
        return [together(random, random.integers(3, 8), () => askAboutNumbers(random))];
      case "rows":
        return [{ exchanges: askAboutRow(random) }];
      case "echo":
        return [together(random, random.integers(1, 4), () => echo(random))];
      case "passages":
        return [passage(random)];
      case "chat":
        return [plainChat(random)];
    }
  }

  drawGame(random: RandomStream): Game {
    const [, games] = weightedChoice(this.families, ([weight]) => weight, random);
    return random.choice(games)(random);
  }

  /** One observation and an action. All actions are given together, so that none is learnt to be likelier. */
  private actions(random: RandomStream): readonly Conversation[] {
    const { system, moment } = this.drawGame(random);
    const { text, replies } = moment(random);
    const chosen = random.sampleIndices(replies.length, Math.min(replies.length, MOST_ACTIONS));
    const isOneMessage = random.random() < 0.2;
    const user = isOneMessage ? `${system}\n${text}` : text;
    return chosen.map((i) => {
      const exchanges = [{ skill: "action", user, assistant: replies[i] }];
      return isOneMessage ? { exchanges } : { system, exchanges };
    });
  }

  /** Some turns of one game with random actions. */
  private play(random: RandomStream): Conversation {
    const { system, moment } = this.drawGame(random);
    const exchanges = Array.from({ length: random.integers(2, 6) }, () => {
      const { text, replies } = moment(random);
      return { skill: "action", user: text, assistant: random.choice(replies) };
    });
    return { system, exchanges };
  }

  /** Questions about one observation. */
  private questions(random: RandomStream): Conversation {
    for (;;) {
      const { system, moment } = this.drawGame(random);
      const now = moment(random);
      const first = askAbout(now, random);
      if (first === undefined) continue;
      const exchanges: Exchange[] = [{ ...first, user: `${now.text}\n${first.user}` }];
      const count = random.integers(3, 9);
      while (exchanges.length < count) exchanges.push(askAbout(now, random)!);
      return random.random() < 0.4 ? { system, exchanges } : { exchanges };
    }
  }

  /** Actions by a rule that is told: before several observations, or with each. */
  private followRule(random: RandomStream): Conversation {
    for (;;) {
      const { system, moment } = this.drawGame(random);
      const moments = Array.from({ length: random.integers(2, 7) }, () => moment(random));
      const rule = drawRule(moments[0], random);
      if (rule === undefined) continue;
      const isToldFirst = random.random() < 0.7;
      const systems = isToldFirst ? [rule.text, `${system} ${rule.text}`] : [system, undefined];
      const exchanges = moments.map((now) => ({
        skill: rule.skill,
        user: isToldFirst ? now.text : `${now.text}\n${rule.text}`,
        assistant: rule.answer(now),
      }));
      return { system: random.choice(systems), exchanges };
    }
  }
}

/** Questions one after another, sometimes with a word before them. */
function together(random: RandomStream, count: number, ask: () => Exchange): Conversation {
  const system = random.random() < 0.2 ? "Answer the question." : undefined;
  return { system, exchanges: Array.from({ length: count }, ask) };
}

function passage(random: RandomStream): Conversation {
  const { text, ask } = random.choice([wordList, wordList, inventory, positions, cards])(random);
  const { system, exchanges } = together(random, random.integers(2, 8), () => ask(random));
  const [first, ...others] = exchanges;
  return { system, exchanges: [{ ...first, user: `${text} ${first.user}` }, ...others] };
}

function weightedChoice<T>(items: readonly T[], weightOf: (item: T) => number, random: RandomStream): T {
  let left = random.uniform(
    0,
    items.reduce((sum, item) => sum + weightOf(item), 0),
  );
  return items.find((item) => (left -= weightOf(item)) < 0) ?? items[items.length - 1];
}
