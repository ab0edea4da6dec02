import { ROLES, verifyGrid, verifyRoles } from "./verifiers.js";
import { NAMES } from "./words.js";
/** People who always tell the truth and people who always lie. */
export const knightsKnaves = {
    name: "knights_knaves",
    summary: "find out who lies",
    levels: [
        { people: [2, 2], depth: [0, 1] },
        { people: [2, 2], depth: [1, 1] },
        { people: [3, 3], depth: [1, 1] },
        { people: [4, 5], depth: [1, 2] },
    ],
    defaultLevel: 1,
    verify: verifyRoles,
    createItem(draw) {
        const names = draw.subset(NAMES, draw.setting("people"));
        const [honest, liar] = draw.pick(ROLES);
        const name = (role) => `${/^[aeiou]/.test(role) ? "an" : "a"} ${role}`;
        for (;;) {
            const statements = names.map(() => drawStatement(draw, names, [name(honest), name(liar)], draw.setting("depth")));
            const solutions = listAssignments(names.length).filter((isHonest) => statements.every(({ isTrue }, i) => isTrue(isHonest) === isHonest[i]));
            if (solutions.length !== 1)
                continue;
            const said = statements.map(({ text }, i) => `${names[i]} says: ${text}.`);
            const roles = names.map((person, i) => `${person} is ${name(solutions[0][i] ? honest : liar)}`);
            return {
                question: `Each ${honest} tells the truth, each ${liar} lies. ${said.join(" ")} Who is what? Answer in the form: ${names[0]} is ${name(honest)}, and ...`,
                answer: `${roles.slice(0, -1).join(", ")}, and ${roles.at(-1)}.`,
                metadata: { solution: solutions[0], names },
            };
        }
    },
};
function drawStatement(draw, names, roles, depth) {
    const kind = depth === 0 ? "is" : draw.pick(["is", "and", "or", "if", "iff"]);
    if (kind === "is") {
        const [person, role] = [draw.int(0, names.length - 1), draw.int(0, 1)];
        return { text: `${names[person]} is ${roles[role]}`, isTrue: (isHonest) => isHonest[person] === (role === 0) };
    }
    const [a, b] = draw.list(2, () => drawStatement(draw, names, roles, depth - 1));
    switch (kind) {
        case "and":
            return { text: `${a.text} and ${b.text}`, isTrue: (isHonest) => a.isTrue(isHonest) && b.isTrue(isHonest) };
        case "or":
            return { text: `${a.text} or ${b.text}`, isTrue: (isHonest) => a.isTrue(isHonest) || b.isTrue(isHonest) };
        case "if":
            return { text: `if ${a.text} then ${b.text}`, isTrue: (isHonest) => !a.isTrue(isHonest) || b.isTrue(isHonest) };
        default:
            return {
                text: `${a.text} if and only if ${b.text}`,
                isTrue: (isHonest) => a.isTrue(isHonest) === b.isTrue(isHonest),
            };
    }
}
function listAssignments(count) {
    return Array.from({ length: 2 ** count }, (_, bits) => Array.from({ length: count }, (_, i) => (bits >> i) % 2 === 1));
}
const SIZE = 4;
/** A Sudoku of 4 by 4 cells. */
export const miniSudoku = {
    name: "mini_sudoku",
    summary: "solve a 4x4 Sudoku",
    levels: [{ empty: [1, 3] }, { empty: [4, 7] }, { empty: [8, 12] }],
    defaultLevel: 2,
    verify: verifyGrid,
    createItem(draw) {
        const solution = fillGrid(Array.from({ length: SIZE ** 2 }, () => 0), draw.random.permutation(SIZE).map((i) => i + 1));
        // Digits, rows of a band and columns of a stack are exchanged, which reaches other grids.
        const rows = [draw.subset([0, 1], 2), draw.subset([2, 3], 2)].flat();
        const columns = [draw.subset([0, 1], 2), draw.subset([2, 3], 2)].flat();
        const grid = rows.flatMap((row) => columns.map((column) => solution[row * SIZE + column]));
        let empty;
        do
            empty = draw.subset([...grid.keys()], draw.setting("empty"));
        while (countSolutions(grid.map((digit, cell) => (empty.includes(cell) ? 0 : digit))) > 1);
        const format = (digit) => [0, 1, 2, 3].map((row) => [0, 1, 2, 3].map((column) => digit(row * SIZE + column)).join(" ")).join("\n");
        return {
            question: `Fill in the 4x4 Sudoku: each row, column and 2x2 block has 1 to 4.\n${format((cell) => (empty.includes(cell) ? "_" : grid[cell]))}`,
            answer: format((cell) => grid[cell]),
            metadata: { num_empty: empty.length },
        };
    },
};
/** Whether a digit may stand in a cell. */
function fits(grid, cell, digit) {
    const [x, y] = [cell % SIZE, Math.floor(cell / SIZE)];
    return grid.every((other, i) => {
        const [column, row] = [i % SIZE, Math.floor(i / SIZE)];
        const isSameBlock = column >> 1 === x >> 1 && row >> 1 === y >> 1;
        return other !== digit || !(column === x || row === y || isSameBlock);
    });
}
function fillGrid(grid, digits) {
    const cell = grid.indexOf(0);
    if (cell < 0)
        return grid;
    for (const digit of digits) {
        const filled = fits(grid, cell, digit) ? fillGrid(grid.with(cell, digit), digits) : undefined;
        if (filled !== undefined)
            return filled;
    }
    return undefined;
}
function countSolutions(grid) {
    const cell = grid.indexOf(0);
    if (cell < 0)
        return 1;
    return [1, 2, 3, 4].reduce((sum, digit) => sum + (fits(grid, cell, digit) ? countSolutions(grid.with(cell, digit)) : 0), 0);
}
