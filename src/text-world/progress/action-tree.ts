import { LlamaGymError } from "../../core/errors.js";
import type { Action } from "../logic/action.js";
import type { KnowledgeBase } from "../logic/knowledge-base.js";
import { insertionSort } from "./insertion-sort.js";

/** Limits for untrusted game files, far above TextWorld's largest quests. */
const MAX_NODES = 2000;
const MAX_POLICY_LENGTH = 500;

/** Element of a tree node. Copies of a tree share elements, including their parent links. */
class TreeElement {
  parent: TreeElement | undefined;
  constructor(readonly action: Action) {}

  /** Returns whether this action needs a fact that the other adds. */
  dependsOn(other: TreeElement): boolean {
    return other.action.added.some((fact) => this.action.required.has(fact.key));
  }

  /** Returns whether it adds a fact that no other one adds. */
  isDistinctFrom(others: readonly TreeElement[]): boolean {
    const known = new Set(others.flatMap(({ action }) => action.added.map((fact) => fact.key)));
    return this.action.added.some((fact) => !known.has(fact.key));
  }

  /**
   * Returns whether it should come first: the other would undo more of its preconditions than vice
   * versa.
   */
  isBefore(other: TreeElement): boolean {
    const countConflicts = (by: TreeElement, of: TreeElement) => {
      const needed = of.neededFacts();
      return by.action.removed.filter((fact) => needed.has(fact.key)).length;
    };
    return countConflicts(other, this) > countConflicts(this, other);
  }

  /** Preconditions of this action and its ancestors that they do not add themselves. */
  private neededFacts(): Set<string> {
    const needed = new Set(this.action.required);
    let below = this.action;
    for (let above = this.parent; above !== undefined; above = above.parent) {
      for (const fact of above.action.required) needed.add(fact);
      for (const fact of below.added) needed.delete(fact.key);
      below = above.action;
    }
    return needed;
  }
}

class TreeNode {
  children: TreeNode[] = [];
  parent: TreeNode | undefined;
  constructor(readonly element: TreeElement) {}

  /** Adds a copy of the node below every node that depends on it. Returns whether there is any. */
  push(node: TreeNode): boolean {
    if (node === this) return true;
    let added = false;
    for (const child of this.children) added = child.push(node) || added;
    const known = !node.element.isDistinctFrom(this.children.map((child) => child.element));
    if (!this.element.dependsOn(node.element) || known) return added;
    const copy = node.copy();
    this.children.push(copy);
    copy.element.parent = this.element;
    copy.parent = this;
    return true;
  }

  copy(): TreeNode {
    const copy = new TreeNode(this.element);
    copy.children = this.children.map((child) => {
      const childCopy = child.copy();
      childCopy.parent = copy;
      return childCopy;
    });
    return copy;
  }

  /** Iterates in post-order. */
  *nodes(): Generator<TreeNode> {
    for (const child of this.children) yield* child.nodes();
    yield this;
  }
}

/**
 * Tree of the actions that lead to a goal, each above its dependencies. Leaves are applicable now.
 */
export class ActionTree {
  private roots: TreeNode[] = [];

  constructor(private readonly knowledge: KnowledgeBase) {}

  /** Merges trees into one with all their roots. */
  static merge(knowledge: KnowledgeBase, trees: readonly ActionTree[]): ActionTree {
    const merged = new ActionTree(knowledge);
    merged.roots = trees.flatMap((tree) => tree.roots.map((root) => root.copy()));
    return merged;
  }

  get isEmpty(): boolean {
    return this.roots.length === 0;
  }

  /**
   * Adds an action below all that depend on it, or as the root of an empty tree. Returns whether it
   * was added.
   * @throws FILE_CORRUPT when a quest's dependencies exceed any real quest's
   */
  push(action: Action): boolean {
    const node = new TreeNode(new TreeElement(action));
    if (this.isEmpty) {
      this.roots.push(node);
      return true;
    }
    let added = false;
    for (const root of this.roots) added = root.push(node) || added;
    if (added && this.nodes().length > MAX_NODES)
      throw new LlamaGymError("FILE_CORRUPT", `A quest's actions make a tree of more than ${MAX_NODES} nodes.`);
    return added;
  }

  /** Removes a completed action, and adds back the ones it undid. */
  remove(action: Action): { changed: boolean; reverse: Action | undefined } {
    let changed = this.removeMatchingLeaves(action);
    const reverse = this.knowledge.reverseAction(action);
    if (this.isEmpty) return { changed, reverse };
    if (reverse !== undefined) changed = this.push(reverse);
    else if (this.push(action.inverse())) changed = true;
    return { changed, reverse };
  }

  /**
   * Orders the actions leaf by leaf, those that undo least of the rest first.
   * For actions that undo each other forever, the list ends after MAX_POLICY_LENGTH.
   */
  flatten(): Action[] {
    const tree = ActionTree.merge(this.knowledge, [this]);
    const actions: Action[] = [];
    let changed = false;
    let reverse: Action | undefined;
    while (!tree.isEmpty && actions.length < MAX_POLICY_LENGTH) {
      const leaves = insertionSort(tree.leaves(), (a, b) => a.isBefore(b));
      const isUndone = (leaf: TreeElement) => changed && reverse !== undefined && leaf.action.key === reverse.key;
      const leaf = leaves.find((candidate) => !isUndone(candidate)) ?? leaves[leaves.length - 1];
      actions.push(leaf.action);
      ({ changed, reverse } = tree.remove(leaf.action));
      for (const root of tree.roots) {
        if (root.children.length > 0) continue;
        actions.push(root.element.action);
        tree.remove(root.element.action);
      }
    }
    return actions;
  }

  private removeMatchingLeaves(action: Action): boolean {
    const isSame = (node: TreeNode) => node.element.action.key === action.key;
    const nodes = this.nodes();
    if (!nodes.some((node) => node.children.length === 0 && isSame(node))) return false;
    for (const node of nodes.filter(isSame)) {
      if (node.parent === undefined) this.roots = this.roots.filter((root) => root !== node);
      else node.parent.children = node.parent.children.filter((child) => child !== node);
    }
    return true;
  }

  private leaves(): TreeElement[] {
    const leaves = this.nodes().filter((node) => node.children.length === 0);
    return [...new Set(leaves.map((node) => node.element))];
  }

  private nodes(): TreeNode[] {
    return this.roots.flatMap((root) => [...root.nodes()]);
  }
}
