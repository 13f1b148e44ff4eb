"use strict";
// Draws the figures. What they show is also in the page's text and tables, so nothing is lost without it.
(() => {
  const HEIGHT = 230;
  const numbers = (text) => (text ? text.split(" ").map(Number) : []);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const phrase = (value) => {
    const size = Math.abs(value);
    if (size && (size >= 1e5 || size < 1e-3)) return String(Number(value.toPrecision(3)).toExponential()).replace("e+", "e");
    return String(Number(value.toPrecision(3)));
  };
  const font = "12px system-ui, sans-serif";

  function axis(label, values, side) {
    const line = { stroke: colour("line"), width: 1 };
    const room = side === 3 ? 58 : 34;
    return { label, values, size: room, labelSize: 20, font, labelFont: font, gap: 4,
      stroke: colour("soft"), grid: line, ticks: { ...line, size: 4 } };
  }

  const linear = (least, most) => {
    const room = (most - least) * 0.03 || Math.abs(most) * 0.1 || 1;
    return [least - room, most + room];
  };
  const decades = (least, most) => [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most))];
  const told = (_plot, splits) => splits.map((value) => (value === null ? "" : phrase(value)));

  // Powers of ten, no more of them than there is room for, and 1 among them.
  const powers = (bottom, top) => {
    const [first, last] = [Math.round(Math.log10(bottom)), Math.round(Math.log10(top))];
    const step = Math.max(1, Math.ceil((last - first) / 5));
    const from = Math.ceil(first / step) * step;
    return Array.from({ length: Math.floor((last - from) / step) + 1 }, (_, index) => 10 ** (from + index * step));
  };

  function errors(box) {
    const relative = box.dataset.kind === "relative";
    const x = numbers(box.dataset.x);
    const y = numbers(box.dataset.y);
    const over = (value) => !relative || value > 1;
    const [least, high] = decades(Math.min(...y), Math.max(...y));
    const bottom = relative ? 1e-6 : least / 10;
    const top = relative ? Math.max(10, high) : high * 10;
    const named = (_plot, splits) => splits.map((value) => (relative && value === 1 ? "allowed" : phrase(value)));
    const dots = (name) => ({ paths: () => null,
      points: { show: true, size: 5, width: 0, fill: colour(name), stroke: colour(name) } });
    const limit = (plot) => {
      const { ctx, bbox } = plot;
      const at = Math.round(plot.valToPos(1, "y", true));
      ctx.save();
      ctx.strokeStyle = colour("ink");
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(bbox.left, at);
      ctx.lineTo(bbox.left + bbox.width, at);
      ctx.stroke();
      ctx.restore();
    };
    return {
      data: [x, y.map((value) => (over(value) ? null : value)), y.map((value) => (over(value) ? value : null))],
      scales: { x: { time: false, range: (_plot, least, most) => linear(least, most) },
        y: { distr: 3, log: 10, range: [bottom, top] } },
      axes: [axis("value of the reference", told, 2),
        { ...axis(relative ? "error, times what is allowed" : "error", named, 3), splits: () => powers(bottom, top),
          filter: (_plot, splits) => splits }],
      series: [{}, dots("good"), dots("bad")],
      hooks: { draw: relative ? [limit] : [] },
      legend: { show: false },
    };
  }

  function latencies(box) {
    const rows = [...box.parentElement.querySelectorAll("tr[data-ms]")];
    const found = rows.map((row) => numbers(row.dataset.ms));
    const x = [...new Set(found.flat())].sort((a, b) => a - b);
    // A coarse clock gives 0, which has no place on a logarithmic axis.
    const wide = x[0] > 0 && x[x.length - 1] / x[0] > 20;
    const columns = found.map((times) => {
      const shares = new Map(times.map((time, index) => [time, (100 * (index + 1)) / times.length]));
      return x.map((time) => shares.get(time) ?? null);
    });
    const near = (_plot, least, most) => (wide ? [least / 1.15, most * 1.15] : linear(Math.min(least, 0), most));
    const colours = ["accent", "caution", "soft"];
    return {
      data: [x, ...columns],
      scales: { x: { time: false, distr: wide ? 3 : 1, log: 10, range: near }, y: { range: [0, 104] } },
      axes: [axis("milliseconds", told, 2),
        axis("runs", (_plot, splits) => splits.map((value) => (value > 100 ? "" : `${value} %`)), 3)],
      series: [{}, ...rows.map((row, index) => ({
        label: row.querySelector("th").textContent,
        stroke: colour(colours[index % colours.length]),
        width: 2, spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }),
        points: { show: found[index].length <= 12, size: 6, fill: colour(colours[index % colours.length]) },
      }))],
      legend: { show: true, live: false, markers: { width: 0, fill: (plot, index) => plot.series[index].stroke() } },
    };
  }

  const drawn = new Map();

  function draw(box) {
    const width = box.parentElement.clientWidth;
    const old = drawn.get(box);
    if (width < 50) return;
    if (old) old.destroy();
    const { data, ...options } = box.dataset.kind === "latency" ? latencies(box) : errors(box);
    const common = { width, height: HEIGHT, cursor: { show: false }, select: { show: false }, padding: [8, 8, 0, 0] };
    drawn.set(box, new uPlot({ ...common, ...options }, data, box));
  }

  const boxes = [...document.querySelectorAll(".plot")];
  // A figure in a closed part of the page has no width until that is opened.
  const watch = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const box = target.querySelector(".plot");
      if (box && drawn.get(box)?.width !== target.clientWidth) draw(box);
    }
  });
  for (const box of boxes) watch.observe(box.parentElement);
  // Colours are drawn, so they change only where they are drawn again.
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => boxes.forEach(draw));
  }
})();
