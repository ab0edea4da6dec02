import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { batchSpace, unbatch } from "./batch.js";
import { Space, type SampleMask, type SampleOptions, type SpaceSeed } from "./space.js";

/** Nodes and edges; `edgeLinks` has the indices of the nodes at the ends of each edge. */
export interface GraphInstance<N = unknown, E = unknown> {
  readonly nodes: readonly N[];
  readonly edges?: readonly E[];
  readonly edgeLinks?: readonly (readonly [from: number, to: number])[];
}

export interface GraphSampleOptions extends SampleOptions {
  readonly numNodes?: number;
  /** Default: drawn below numNodes * (numNodes - 1). */
  readonly numEdges?: number;
}

/** Graphs with nodes, and optionally edges, from given spaces. */
export class Graph<N = unknown, E = unknown> extends Space<GraphInstance<N, E>> {
  constructor(
    readonly nodeSpace: Space<N>,
    readonly edgeSpace?: Space<E>,
  ) {
    super();
  }

  override get parts(): readonly Space[] {
    return this.edgeSpace === undefined ? [this.nodeSpace] : [this.nodeSpace, this.edgeSpace];
  }

  override seed(seed?: SpaceSeed): SpaceSeed {
    return this.seedWithParts(seed);
  }

  /** Samples a member; a mask or probability is [node mask or null, edge mask or null]. */
  override sample(options: GraphSampleOptions = {}): GraphInstance<N, E> {
    this.rejectMaskWithProbability(options);
    const { numNodes = 10, mask, probability } = options;
    if (!(Number.isInteger(numNodes) && numNodes > 0))
      throw invalidArgument(`The number of nodes is expected to be greater than 0, actual value: ${numNodes}`);
    const [nodeMask, edgeMask] = ((mask ?? probability) as readonly (SampleMask | null)[] | undefined) ?? [];
    const restrict = (part: SampleMask | null | undefined) =>
      mask === undefined ? { probability: part ?? undefined } : { mask: part ?? undefined };
    const drawEdgeCount = numNodes > 1 ? () => this.random.integers(0, numNodes * (numNodes - 1)) : () => 0;
    const numEdges = options.numEdges ?? drawEdgeCount();
    const nodes = sampleBatch(this.nodeSpace, numNodes, restrict(nodeMask));
    if (this.edgeSpace === undefined || numEdges === 0) return { nodes };
    const repeated =
      edgeMask === undefined || edgeMask === null ? undefined : Array.from({ length: numEdges }, () => edgeMask);
    const edges = sampleBatch(this.edgeSpace, numEdges, restrict(options.numEdges === undefined ? repeated : edgeMask));
    const ends = this.random.integersArray(0, numNodes, 2 * numEdges, "int32");
    return { nodes, edges, edgeLinks: edges.map((_, i) => [ends[2 * i], ends[2 * i + 1]] as const) };
  }

  override contains(value: unknown): value is GraphInstance<N, E> {
    if (typeof value !== "object" || value === null) return false;
    const { nodes, edges, edgeLinks } = value as Partial<GraphInstance<N, E>>;
    if (!Array.isArray(nodes) || !nodes.every((node) => this.nodeSpace.contains(node))) return false;
    if (edges === undefined || edgeLinks === undefined) return edges === edgeLinks;
    const isNode = (index: unknown) =>
      Number.isInteger(index) && (index as number) >= 0 && (index as number) < nodes.length;
    return (
      edges.length === edgeLinks.length &&
      edges.every((edge) => this.edgeSpace?.contains(edge) === true) &&
      edgeLinks.every((link) => link.length === 2 && link.every(isNode))
    );
  }

  override encode({ nodes, edges, edgeLinks }: GraphInstance<N, E>): JsonValue {
    const encoded = { nodes: nodes.map((node) => this.nodeSpace.encode(node)) };
    const { edgeSpace } = this;
    if (edgeSpace === undefined || edges === undefined || edgeLinks === undefined) return encoded;
    return { ...encoded, edges: edges.map((edge) => edgeSpace.encode(edge)), edgeLinks: [...edgeLinks] };
  }

  override decode(json: JsonValue): GraphInstance<N, E> {
    const { nodes, edges, edgeLinks } = (json ?? {}) as { readonly [name: string]: readonly JsonValue[] | undefined };
    if (!Array.isArray(nodes)) return this.checkMember(json);
    const decoded = { nodes: nodes.map((node: JsonValue) => this.nodeSpace.decode(node)) };
    const { edgeSpace } = this;
    if (edgeSpace === undefined || edges === undefined) return this.checkMember(decoded);
    return this.checkMember({ ...decoded, edges: edges.map((edge) => edgeSpace.decode(edge)), edgeLinks });
  }

  override toString(): string {
    return `Graph(${this.nodeSpace.toString()}, ${this.edgeSpace?.toString() ?? "None"})`;
  }
}

/** Draws values as one array; the space's stream advances by one number, as in Gymnasium. */
function sampleBatch<T>(space: Space<T>, count: number, options: SampleOptions): readonly T[] {
  const values = unbatch(space, batchSpace(space, count).sample(options), count) as T[];
  space.skipDraw();
  return values;
}
