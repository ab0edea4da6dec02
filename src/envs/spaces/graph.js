import { invalidArgument } from "../../core/errors.js";
import { batchSpace, unbatch } from "./batch.js";
import { Space } from "./space.js";
/** Graphs with nodes, and optionally edges, from given spaces. */
export class Graph extends Space {
    nodeSpace;
    edgeSpace;
    constructor(nodeSpace, edgeSpace) {
        super();
        this.nodeSpace = nodeSpace;
        this.edgeSpace = edgeSpace;
    }
    get parts() {
        return this.edgeSpace === undefined ? [this.nodeSpace] : [this.nodeSpace, this.edgeSpace];
    }
    seed(seed) {
        return this.seedWithParts(seed);
    }
    /** Samples a member; a mask or probability is [node mask or null, edge mask or null]. */
    sample(options = {}) {
        this.rejectMaskWithProbability(options);
        const { numNodes = 10, mask, probability } = options;
        if (!(Number.isInteger(numNodes) && numNodes > 0))
            throw invalidArgument(`The number of nodes is expected to be greater than 0, actual value: ${numNodes}`);
        const [nodeMask, edgeMask] = (mask ?? probability) ?? [];
        const restrict = (part) => mask === undefined ? { probability: part ?? undefined } : { mask: part ?? undefined };
        const drawEdgeCount = numNodes > 1 ? () => this.random.integers(0, numNodes * (numNodes - 1)) : () => 0;
        const numEdges = options.numEdges ?? drawEdgeCount();
        const nodes = sampleBatch(this.nodeSpace, numNodes, restrict(nodeMask));
        if (this.edgeSpace === undefined || numEdges === 0)
            return { nodes };
        const repeated = edgeMask === undefined || edgeMask === null ? undefined : Array.from({ length: numEdges }, () => edgeMask);
        const edges = sampleBatch(this.edgeSpace, numEdges, restrict(options.numEdges === undefined ? repeated : edgeMask));
        const ends = this.random.integersArray(0, numNodes, 2 * numEdges, "int32");
        return { nodes, edges, edgeLinks: edges.map((_, i) => [ends[2 * i], ends[2 * i + 1]]) };
    }
    contains(value) {
        if (typeof value !== "object" || value === null)
            return false;
        const { nodes, edges, edgeLinks } = value;
        if (!Array.isArray(nodes) || !nodes.every((node) => this.nodeSpace.contains(node)))
            return false;
        if (edges === undefined || edgeLinks === undefined)
            return edges === edgeLinks;
        const isNode = (index) => Number.isInteger(index) && index >= 0 && index < nodes.length;
        return (edges.length === edgeLinks.length &&
            edges.every((edge) => this.edgeSpace?.contains(edge) === true) &&
            edgeLinks.every((link) => link.length === 2 && link.every(isNode)));
    }
    encode({ nodes, edges, edgeLinks }) {
        const encoded = { nodes: nodes.map((node) => this.nodeSpace.encode(node)) };
        const { edgeSpace } = this;
        if (edgeSpace === undefined || edges === undefined || edgeLinks === undefined)
            return encoded;
        return { ...encoded, edges: edges.map((edge) => edgeSpace.encode(edge)), edgeLinks: [...edgeLinks] };
    }
    decode(json) {
        const { nodes, edges, edgeLinks } = (json ?? {});
        if (!Array.isArray(nodes))
            return this.checkMember(json);
        const decoded = { nodes: nodes.map((node) => this.nodeSpace.decode(node)) };
        const { edgeSpace } = this;
        if (edgeSpace === undefined || edges === undefined)
            return this.checkMember(decoded);
        return this.checkMember({ ...decoded, edges: edges.map((edge) => edgeSpace.decode(edge)), edgeLinks });
    }
    toString() {
        return `Graph(${this.nodeSpace.toString()}, ${this.edgeSpace?.toString() ?? "None"})`;
    }
}
/** Draws values as one array; the space's stream advances by one number, as in Gymnasium. */
function sampleBatch(space, count, options) {
    const values = unbatch(space, batchSpace(space, count).sample(options), count);
    space.skipDraw();
    return values;
}
