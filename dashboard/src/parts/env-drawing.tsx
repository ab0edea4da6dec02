import type { JSX } from "preact";
import type { Drawing, Shape } from "./drawing-shapes.js";

/** A picture of an environment's state. */
export function EnvDrawing({ drawing }: { readonly drawing: Drawing }): JSX.Element {
  const { width, height, shapes } = drawing;
  return (
    <div class="screen">
      <svg class="drawing" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={drawing.label}>
        {shapes.map(toElement)}
      </svg>
    </div>
  );
}

function toElement(shape: Shape, key: number): JSX.Element {
  const { name } = shape;
  switch (shape.kind) {
    case "rect": {
      const [x, y, width, height] = shape.at;
      return <rect key={key} class={name} x={x} y={y} width={width} height={height} />;
    }
    case "circle": {
      const [cx, cy, r] = shape.at;
      return <circle key={key} class={name} cx={cx} cy={cy} r={r} />;
    }
    case "line": {
      const [x1, y1, x2, y2] = shape.at;
      return <line key={key} class={name} x1={x1} y1={y1} x2={x2} y2={y2} />;
    }
    case "text":
      return (
        <text key={key} class={name} x={shape.at[0]} y={shape.at[1]}>
          {shape.text}
        </text>
      );
  }
}
