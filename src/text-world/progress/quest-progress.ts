import type { Action } from "../logic/action.js";
import type { Facts } from "../logic/facts.js";
import type { KnowledgeBase } from "../logic/knowledge-base.js";
import { ActionTree } from "./action-tree.js";

/** A game event: the action `condition` becomes applicable. `actions` is one way to reach it. */
export interface GameEvent {
  readonly actions: readonly Action[];
  readonly condition: Action;
}

/** A task: one of its winning events completes it, one of its failing events fails it. */
export interface Quest {
  readonly description: string | null;
  readonly reward: number;
  readonly optional: boolean;
  readonly repeatable: boolean;
  readonly winEvents: readonly GameEvent[];
  readonly failEvents: readonly GameEvent[];
}

/** Name of the action that represents an event in a policy; it is not a command. */
export const TRIGGER = "trigger";

/**
 * Limit for untrusted game files on the search for a shorter policy; a policy of 100 actions takes
 * 350,000.
 */
const MAX_CHECKED_ACTIONS = 2_000_000;

/** Tracks whether an event happened or became impossible, and its remaining actions. */
class EventProgress {
  triggered = false;
  untriggerable = false;
  readonly event: GameEvent;
  tree: ActionTree;
  private policy: readonly Action[];

  constructor(
    event: GameEvent,
    private readonly knowledge: KnowledgeBase,
  ) {
    this.event = event;
    this.policy = event.actions.length === 0 ? [] : [...event.actions, event.condition];
    this.tree = this.buildTree();
  }

  get done(): boolean {
    return this.triggered || this.untriggerable;
  }

  /** Number of actions that lead to the event; 0 if it is over or they are unknown. */
  get remainingLength(): number {
    return this.done ? 0 : this.policy.filter((action) => action.name !== TRIGGER).length;
  }

  /** Updates after an action, if any, with the facts that hold now. */
  update(action: Action | undefined, facts: Facts): void {
    if (this.done) return;
    this.triggered = facts.isApplicable(this.event.condition);
    const shorter = shortenPolicy(this.tree.flatten(), facts);
    if (shorter !== undefined) {
      this.policy = shorter;
      this.tree = this.buildTree();
      return;
    }
    if (action === undefined || this.tree.isEmpty) return;
    const { changed, reverse } = this.tree.remove(action);
    if (changed && reverse === undefined) this.untriggerable = true;
    if (changed && reverse !== undefined) this.policy = this.tree.flatten();
  }

  private buildTree(): ActionTree {
    const tree = new ActionTree(this.knowledge);
    for (const action of [...this.policy].reverse()) tree.push(action);
    return tree;
  }
}

/** Removes unnecessary actions in a fixed search order; undefined if there are none. */
function shortenPolicy(policy: readonly Action[], facts: Facts): readonly Action[] | undefined {
  let checked = 0;
  const findShorter = (actions: readonly Action[]): readonly Action[] | undefined => {
    for (let start = 0; start < actions.length; start++) {
      for (let end = actions.length - 1; end > start; end--) {
        checked += start + actions.length - end;
        if (checked > MAX_CHECKED_ACTIONS) return undefined;
        const shorter = [...actions.slice(0, start), ...actions.slice(end)];
        if (facts.isSequenceApplicable(shorter)) return shorter;
      }
    }
    return undefined;
  };
  let found = findShorter(policy);
  for (let next = found; next !== undefined; next = findShorter(next)) found = next;
  return found;
}

/** Tracks one quest. */
export class QuestProgress {
  completions = 0;
  private readonly winEvents: readonly EventProgress[];
  private readonly failEvents: readonly EventProgress[];

  constructor(
    readonly quest: Quest,
    knowledge: KnowledgeBase,
  ) {
    this.winEvents = quest.winEvents.map((event) => new EventProgress(event, knowledge));
    this.failEvents = quest.failEvents.map((event) => new EventProgress(event, knowledge));
  }

  get completable(): boolean {
    return this.winEvents.length > 0;
  }

  get completed(): boolean {
    return this.winEvents.some((event) => event.triggered);
  }

  /** Whether it failed or became impossible. */
  get failed(): boolean {
    return this.failEvents.some((event) => event.triggered) || this.winEvents.some((event) => event.untriggerable);
  }

  get done(): boolean {
    return this.completed || this.failed;
  }

  /** Tree of the winning event with the fewest remaining actions; undefined when none is known. */
  get tree(): ActionTree | undefined {
    const known = this.winEvents.filter(({ remainingLength }) => remainingLength > 0);
    return known.sort((a, b) => a.remainingLength - b.remainingLength).at(0)?.tree;
  }

  update(action: Action | undefined, facts: Facts): void {
    if (this.done) return;
    for (const event of [...this.winEvents, ...this.failEvents]) event.update(action, facts);
    if (!this.completed) return;
    this.completions++;
    if (this.quest.repeatable) for (const event of this.winEvents) event.triggered = false;
  }
}
