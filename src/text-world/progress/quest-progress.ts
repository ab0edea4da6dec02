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

/** Tracks one event: whether it happened or became impossible, and its remaining actions. */
export class EventProgress {
  triggered = false;
  untriggerable = false;
  tree: ActionTree;
  private policy: readonly Action[] = [];

  constructor(
    readonly event: GameEvent,
    private readonly knowledge: KnowledgeBase,
  ) {
    this.tree = new ActionTree(knowledge);
    if (event.actions.length === 0) return;
    this.policy = [...event.actions, event.condition];
    this.buildTree(this.policy);
  }

  get done(): boolean {
    return this.triggered || this.untriggerable;
  }

  /** Actions that lead to the event, without the event itself; empty when it is over or they are unknown. */
  get remainingPolicy(): readonly Action[] {
    return this.done ? [] : this.policy.filter((action) => action.name !== TRIGGER);
  }

  /** Updates after an action, if any, with the facts that hold now. */
  update(action: Action | undefined, facts: Facts): void {
    if (this.done) return;
    this.triggered = facts.isApplicable(this.event.condition);
    if (this.compressPolicy(facts)) return;
    if (action === undefined || this.tree.isEmpty) return;
    const { changed, reverse } = this.tree.remove(action);
    if (changed && reverse === undefined) this.untriggerable = true;
    if (changed && reverse !== undefined) this.policy = this.tree.flatten();
  }

  /** Removes unnecessary actions. Returns whether there were any. */
  private compressPolicy(facts: Facts): boolean {
    let policy: readonly Action[] | undefined = findShorterPolicy(this.tree.flatten(), facts);
    if (policy === undefined) return false;
    while (policy !== undefined) {
      this.policy = policy;
      policy = findShorterPolicy(policy, facts);
    }
    this.tree = new ActionTree(this.knowledge);
    this.buildTree(this.policy);
    return true;
  }

  private buildTree(policy: readonly Action[]): void {
    for (const action of [...policy].reverse()) this.tree.push(action);
  }
}

/** Finds the first applicable policy, in a fixed search order, that skips a section of this one. */
function findShorterPolicy(policy: readonly Action[], facts: Facts): readonly Action[] | undefined {
  for (let start = 0; start < policy.length; start++) {
    for (let end = policy.length - 1; end > start; end--) {
      const shorter = [...policy.slice(0, start), ...policy.slice(end)];
      if (facts.isSequenceApplicable(shorter)) return shorter;
    }
  }
  return undefined;
}

/** Tracks one quest. */
export class QuestProgress {
  completions = 0;
  readonly winEvents: readonly EventProgress[];
  readonly failEvents: readonly EventProgress[];

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

  get failed(): boolean {
    return this.failEvents.some((event) => event.triggered);
  }

  get unfinishable(): boolean {
    return this.winEvents.some((event) => event.untriggerable);
  }

  get done(): boolean {
    return this.completed || this.failed || this.unfinishable;
  }

  /** Tree of the winning event with the fewest remaining actions; undefined when none is known. */
  get tree(): ActionTree | undefined {
    let nearest: EventProgress | undefined;
    for (const event of this.winEvents) {
      const length = event.remainingPolicy.length;
      if (length > 0 && (nearest === undefined || length < nearest.remainingPolicy.length)) nearest = event;
    }
    return nearest?.tree;
  }

  update(action: Action | undefined, facts: Facts): void {
    if (this.done) return;
    for (const event of [...this.winEvents, ...this.failEvents]) event.update(action, facts);
    if (!this.completed) return;
    this.completions++;
    if (this.quest.repeatable) for (const event of this.winEvents) event.triggered = false;
  }
}
