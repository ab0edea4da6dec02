import { COLORS, DOOR_STATES, getOffset, NO_OBJECT, WALL } from "./world.js";
/** Rows and columns of the view; the agent is in the middle of the last row and faces up. */
export const VIEW_SIZE = 7;
const MIDDLE = 3;
const TYPES = { empty: 1, wall: 2, door: 4, key: 5, ball: 6, box: 7 };
const KINDS = new Map(["door", "key", "ball", "box"].map((kind) => [TYPES[kind], kind]));
const WALL_CODE = [TYPES.wall, COLORS.indexOf("grey"), 0];
/** Returns what the agent sees: type, color and state of each cell by column and row; 0 where it sees nothing. */
export function observe(world) {
    const image = new Uint8Array(VIEW_SIZE * VIEW_SIZE * 3);
    const seen = findVisible(world);
    for (let i = 0; i < VIEW_SIZE * VIEW_SIZE; i++) {
        const [column, row] = [Math.floor(i / VIEW_SIZE), i % VIEW_SIZE];
        if (seen[i])
            image.set(encodeCell(world, column === MIDDLE && row === VIEW_SIZE - 1, column, row), 3 * i);
    }
    return image;
}
function encodeCell(world, isAgent, column, row) {
    const content = isAgent ? world.carrying : getContent(world, column, row);
    if (content === WALL)
        return WALL_CODE;
    if (content === NO_OBJECT)
        return [TYPES.empty, 0, 0];
    const { kind, color, state } = world.things[content];
    return [TYPES[kind], COLORS.indexOf(color), state === undefined ? 0 : DOOR_STATES.indexOf(state)];
}
/** Returns the content of a cell of the view; beyond the grid is wall. */
function getContent({ agent, width, height, cells }, column, row) {
    const [dx, dy] = getOffset(agent.direction);
    const [ahead, right] = [VIEW_SIZE - 1 - row, column - MIDDLE];
    const x = agent.x + ahead * dx - right * dy;
    const y = agent.y + ahead * dy + right * dx;
    return x < 0 || y < 0 || x >= width || y >= height ? WALL : cells[y * width + x];
}
/** Returns which cells of the view are visible, by column and row: light spreads row by row away from the agent. */
function findVisible(world) {
    const lit = Array.from({ length: VIEW_SIZE * VIEW_SIZE }, () => false);
    lit[MIDDLE * VIEW_SIZE + VIEW_SIZE - 1] = true;
    const spread = (column, row, step) => {
        if (!lit[column * VIEW_SIZE + row])
            return;
        const content = getContent(world, column, row);
        if (content === WALL || (world.things[content]?.state ?? "open") !== "open")
            return;
        lit[(column + step) * VIEW_SIZE + row] = true;
        if (row === 0)
            return;
        lit[(column + step) * VIEW_SIZE + row - 1] = true;
        lit[column * VIEW_SIZE + row - 1] = true;
    };
    for (let row = VIEW_SIZE - 1; row >= 0; row--) {
        for (let column = 0; column < VIEW_SIZE - 1; column++)
            spread(column, row, 1);
        for (let column = VIEW_SIZE - 1; column > 0; column--)
            spread(column, row, -1);
    }
    return lit;
}
/** Reads the things and walls from an image. */
export function readScene(image) {
    const getType = (column, row) => image[(column * VIEW_SIZE + row) * 3];
    const measureWall = (stepColumn, stepRow) => {
        for (let distance = 1;; distance++) {
            const [column, row] = [MIDDLE + distance * stepColumn, VIEW_SIZE - 1 + distance * stepRow];
            if (column < 0 || column >= VIEW_SIZE || row < 0)
                return undefined;
            if (getType(column, row) === TYPES.wall)
                return distance;
            if (getType(column, row) !== TYPES.empty)
                return undefined;
        }
    };
    const sights = Array.from({ length: VIEW_SIZE * VIEW_SIZE }, (_, i) => {
        const kind = KINDS.get(image[3 * i]);
        if (kind === undefined)
            return undefined;
        const color = COLORS[image[3 * i + 1]];
        const place = { ahead: VIEW_SIZE - 1 - (i % VIEW_SIZE), right: Math.floor(i / VIEW_SIZE) - MIDDLE };
        return { kind, color, ...(kind === "door" ? { state: DOOR_STATES[image[3 * i + 2]] } : {}), ...place };
    });
    const isInHands = ({ ahead, right }) => ahead === 0 && right === 0;
    const seen = sights.filter((sight) => sight !== undefined);
    return {
        carrying: seen.find(isInHands),
        walls: { ahead: measureWall(0, -1), left: measureWall(-1, 0), right: measureWall(1, 0) },
        things: seen.filter((sight) => !isInHands(sight)),
    };
}
