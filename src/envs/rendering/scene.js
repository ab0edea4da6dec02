import { GLYPH_HEIGHT, GLYPH_WIDTH, hasDot } from "./font.js";
import { invalidArgument } from "../../core/errors.js";
/** Returns the polygon of a rectangle. */
export function createRectangle(left, bottom, right, top) {
    return [
        [left, bottom],
        [right, bottom],
        [right, top],
        [left, top],
    ];
}
export const createPolygon = (points, color, glyph) => ({
    kind: "polygon",
    points,
    color,
    glyph,
});
export const createCircle = (center, radius, color, glyph) => ({
    kind: "circle",
    center,
    radius,
    color,
    glyph,
});
export const createLine = (from, to, width, color, glyph) => ({
    kind: "line",
    from,
    to,
    width,
    color,
    glyph,
});
export const createText = (center, text, size, color) => ({
    kind: "text",
    center,
    text,
    size,
    color,
});
/** Returns the polygon of a line with a width. */
function outlineLine([x0, y0], [x1, y1], width) {
    const length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const dx = ((y0 - y1) / length) * (width / 2);
    const dy = ((x1 - x0) / length) * (width / 2);
    return [
        [x0 + dx, y0 + dy],
        [x1 + dx, y1 + dy],
        [x1 - dx, y1 - dy],
        [x0 - dx, y0 - dy],
    ];
}
/** Returns whether a point is inside a polygon (an odd number of edges to its right). */
function isInsidePolygon(points, x, y) {
    let isInside = false;
    for (let i = 0, j = points.length - 1; i < points.length; j = i++) {
        const [xi, yi] = points[i];
        const [xj, yj] = points[j];
        if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi)
            isInside = !isInside;
    }
    return isInside;
}
function computeArea(drawing) {
    switch (drawing.kind) {
        case "circle": {
            const { center, radius } = drawing;
            const [x, y] = center;
            const covers = (px, py) => (px - x) ** 2 + (py - y) ** 2 <= radius ** 2;
            return { left: x - radius, right: x + radius, bottom: y - radius, top: y + radius, covers };
        }
        case "text": {
            const dot = drawing.size / GLYPH_HEIGHT;
            const advance = GLYPH_WIDTH + 1;
            const width = (drawing.text.length * advance - 1) * dot;
            const left = drawing.center[0] - width / 2;
            const top = drawing.center[1] + drawing.size / 2;
            const covers = (px, py) => {
                const column = Math.floor((px - left) / dot);
                return hasDot(drawing.text[Math.floor(column / advance)] ?? " ", column % advance, Math.floor((top - py) / dot));
            };
            return { left, right: left + width, bottom: top - drawing.size, top, covers };
        }
        default: {
            const points = drawing.kind === "polygon" ? drawing.points : outlineLine(drawing.from, drawing.to, drawing.width);
            const xs = points.map(([x]) => x);
            const ys = points.map(([, y]) => y);
            const covers = (x, y) => isInsidePolygon(points, x, y);
            return { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys), covers };
        }
    }
}
/** Visits the cells of a grid whose centers a drawing covers. */
function visitCovered(drawing, { left, right, bottom, top }, { width, height }, visit) {
    const area = computeArea(drawing);
    const perUnitX = width / (right - left);
    const perUnitY = height / (top - bottom);
    const firstColumn = Math.max(0, Math.floor((area.left - left) * perUnitX));
    const lastColumn = Math.min(width - 1, Math.ceil((area.right - left) * perUnitX));
    const firstRow = Math.max(0, Math.floor((top - area.top) * perUnitY));
    const lastRow = Math.min(height - 1, Math.ceil((top - area.bottom) * perUnitY));
    for (let row = firstRow; row <= lastRow; row++) {
        const y = top - (row + 0.5) / perUnitY;
        for (let column = firstColumn; column <= lastColumn; column++)
            if (area.covers(left + (column + 0.5) / perUnitX, y))
                visit(column, row);
    }
}
/** Rasterizes a scene; each pixel has the color of the topmost shape at its center. */
export function drawPixels(scene) {
    const { width, height } = scene.pixels;
    const data = new Uint8Array(width * height * 3);
    const paint = (pixel, color) => data.set(color, 3 * pixel);
    for (let pixel = 0; pixel < width * height; pixel++)
        paint(pixel, scene.background);
    for (const drawing of scene.drawings)
        visitCovered(drawing, scene, scene.pixels, (column, row) => paint(row * width + column, drawing.color));
    return { width, height, data };
}
/** Renders a scene as lines of text, without colors or trailing spaces. */
export function drawText(scene) {
    const { width, height } = scene.cells;
    const cellsPerUnitX = width / (scene.right - scene.left);
    const cellsPerUnitY = height / (scene.top - scene.bottom);
    const rows = Array.from({ length: height }, () => " ".repeat(width).split(""));
    const plot = (x, y, glyph) => {
        const column = Math.floor((x - scene.left) * cellsPerUnitX);
        const row = Math.floor((scene.top - y) * cellsPerUnitY);
        if (row >= 0 && row < height && column >= 0 && column < width)
            rows[row][column] = glyph;
    };
    for (const drawing of scene.drawings)
        drawDrawing(drawing, scene, cellsPerUnitX, cellsPerUnitY, plot);
    return rows.map((row) => row.join("").trimEnd()).join("\n");
}
function drawDrawing(drawing, scene, cellsPerUnitX, cellsPerUnitY, plot) {
    if (drawing.kind === "text") {
        const start = drawing.center[0] - (drawing.text.length - 1) / 2 / cellsPerUnitX;
        for (let i = 0; i < drawing.text.length; i++)
            plot(start + i / cellsPerUnitX, drawing.center[1], drawing.text[i]);
        return;
    }
    const { glyph } = drawing;
    if (glyph === undefined)
        return;
    if (drawing.kind === "line") {
        const [x0, y0] = drawing.from;
        const [x1, y1] = drawing.to;
        const steps = Math.ceil(2 * Math.max(Math.abs(x1 - x0) * cellsPerUnitX, Math.abs(y1 - y0) * cellsPerUnitY)) || 1;
        for (let i = 0; i <= steps; i++)
            plot(x0 + ((x1 - x0) * i) / steps, y0 + ((y1 - y0) * i) / steps, glyph);
        return;
    }
    if (drawing.kind === "circle")
        plot(...drawing.center, glyph);
    visitCovered(drawing, scene, scene.cells, (column, row) => plot(scene.left + (column + 0.5) / cellsPerUnitX, scene.top - (row + 0.5) / cellsPerUnitY, glyph));
}
export function renderScene(mode, scene) {
    if (mode === "ansi")
        return drawText(scene);
    if (mode === "rgb_array")
        return drawPixels(scene);
    throw invalidArgument(`Render mode must be "ansi" or "rgb_array", got "${String(mode)}".`);
}
