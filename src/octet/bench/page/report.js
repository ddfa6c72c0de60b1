// Draws the charts of a report from the JSON beside it. Every text of the report goes into canvases and text nodes.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const palettes = {
    light: {
      series: ['#0068a5', '#c24e00', '#0b7d5c', '#a2478a'], ink: '#1c1d1f', soft: '#5d6168', line: '#e4e6e9',
      back: '#ffffff', limit: '#9b1c31', good: '11, 107, 80', queued: '#b4bac2', prefill: '#e08a00', decode: '#2b7fc0',
      failed: '#b3361d',
    },
    dark: {
      series: ['#5cb8f2', '#ffa057', '#3ecf9f', '#e59ad0'], ink: '#e9eaec', soft: '#a0a6ae', line: '#30343a',
      back: '#1c1f22', limit: '#ff8fa3', good: '79, 209, 165', queued: '#5b626b', prefill: '#f0a93a', decode: '#5cb8f2',
      failed: '#ff7a5c',
    },
  };
  const dashes = [[], [8, 5], [2, 4], [12, 4, 2, 4]];
  const shapes = ['circle', 'rectRot', 'triangle', 'rect'];
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const print = matchMedia('print');
  let colours = palettes.light;
  let charts = [];

  // As the tables write numbers.
  const number = (value) => {
    const size = Math.abs(value);
    const digits = size === 0 ? 0 : size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
    return value.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
  };
  const tick = (value) => value.toLocaleString('en-US', {maximumFractionDigits: 3});
  const faded = (colour, share) => colour + Math.round(share * 255).toString(16).padStart(2, '0');
  const short = (text) => (text.length > 48 ? text.slice(0, 47) + '…' : text);

  // Loads along the axis: as numbers where all are, else as names side by side.
  const points = data.targets.flatMap((target) => target.points);
  const numeric = points.every((point) => point.x !== null);
  const xs = [...new Set(points.map((point) => point.x))].filter((x) => x !== null).sort((a, b) => a - b);
  const names = numeric ? [] : [...new Set(
      [...points].sort((a, b) => (a.x ?? Infinity) - (b.x ?? Infinity)).map((point) => point.load))];
  const place = (point) => (numeric ? point.x : point.load);
  const logarithmic = numeric && xs.length > 2 && xs[xs.length - 1] / xs[0] >= 8;
  const loadTitle = data.by_rate ? 'requests sent per second' : 'requests at once';

  const axisStyle = () => ({
    grid: {color: colours.line, borderColor: colours.line, tickLength: 4},
    ticks: {color: colours.soft, font: {size: 12}, maxRotation: 0},
  });
  const title = (text) => ({display: true, text, color: colours.soft, font: {size: 12}});

  function loadAxis() {
    const style = axisStyle();
    if (!numeric) return {...style, type: 'category', labels: names, offset: true, title: title(loadTitle)};
    const one = xs.length === 1;
    return {
      ...style,
      type: logarithmic ? 'logarithmic' : 'linear',
      min: one ? xs[0] * .5 : xs[0] * (logarithmic ? .92 : 1) - (logarithmic ? 0 : (xs[xs.length - 1] - xs[0]) * .04),
      max: one ? xs[0] * 1.5 : xs[xs.length - 1] * (logarithmic ? 1.08 : 1) +
          (logarithmic ? 0 : (xs[xs.length - 1] - xs[0]) * .04),
      title: title(loadTitle),
      afterBuildTicks: (axis) => { axis.ticks = xs.map((value) => ({value})); },
      ticks: {...style.ticks, callback: (value) => tick(value)},
    };
  }

  const valueAxis = (unit, most) => {
    const style = axisStyle();
    return {
      ...style, beginAtZero: true, suggestedMax: most, title: title(unit),
      ticks: {...style.ticks, maxTicksLimit: 7, callback: (value) => tick(value)},
    };
  };

  // Least to most of repeats.
  const whiskers = {
    id: 'whiskers',
    afterDatasetsDraw(chart) {
      const {ctx, scales: {y}} = chart;
      chart.data.datasets.forEach((dataset, index) => {
        if (!dataset.spread || !chart.isDatasetVisible(index)) return;
        ctx.save();
        ctx.strokeStyle = dataset.borderColor;
        ctx.lineWidth = 1.5;
        chart.getDatasetMeta(index).data.forEach((element, i) => {
          const [least, most] = dataset.spread[i];
          if (least === most) return;
          const top = y.getPixelForValue(most), bottom = y.getPixelForValue(least);
          ctx.beginPath();
          for (const [x0, y0, x1, y1] of [[0, top, 0, bottom], [-4, top, 4, top], [-4, bottom, 4, bottom]]) {
            ctx.moveTo(element.x + x0, y0);
            ctx.lineTo(element.x + x1, y1);
          }
          ctx.stroke();
        });
        ctx.restore();
      });
    },
  };

  // A limit as a line; one that is far above the figures is told at the top.
  const limitLines = {
    id: 'limitLines',
    afterDatasetsDraw(chart, _, options) {
      const {ctx, chartArea: {left, right, top}, scales: {y}} = chart;
      ctx.save();
      ctx.font = '600 12px system-ui, sans-serif';
      ctx.textAlign = 'left';
      let above = 0;
      for (const {limit, text} of options.limits) {
        const inside = limit <= y.max;
        const at = inside ? y.getPixelForValue(limit) : top + 16 * above++;
        ctx.strokeStyle = ctx.fillStyle = colours.limit;
        ctx.lineWidth = 1.5;
        if (inside) {
          ctx.setLineDash([5, 4]);
          ctx.beginPath();
          ctx.moveTo(left, at);
          ctx.lineTo(right, at);
          ctx.stroke();
        }
        const words = inside ? text : `↑ ${text}`;
        const below = at - top < 18;
        ctx.textBaseline = below ? 'top' : 'bottom';
        ctx.lineJoin = 'round';
        ctx.setLineDash([]);
        ctx.lineWidth = 4;
        ctx.strokeStyle = colours.back;
        ctx.strokeText(words, left + 8, at + (below ? 4 : -3));
        ctx.fillText(words, left + 8, at + (below ? 4 : -3));
      }
      ctx.restore();
    },
  };

  const limitsOf = (metric) => data.limits.filter((limit) => limit.metric === metric).map((limit) => ({
    limit: limit.limit,
    text: limit.percentile > 0 ? `limit p${limit.percentile} ${number(limit.limit)} ms` : `limit ${number(limit.limit)} ms`,
  }));

  function options(unit, scales, more = {}) {
    return {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      layout: {padding: {top: 6, right: 8}},
      interaction: {mode: 'nearest', intersect: false, axis: 'xy'},
      scales,
      ...more,
      plugins: {
        legend: {display: false},
        tooltip: {callbacks: {
          title: (items) => short(items[0].raw.point ? `load ${items[0].raw.point.load}` : ''),
          label: (item) => `${short(item.dataset.label)}: ${number(item.raw.y)} ${unit}`,
        }},
        limitLines: {limits: []},
        ...more.plugins,
      },
    };
  }

  // The lines of one figure: a point for each load that has it.
  function series(target, index, key, style) {
    const shown = target.points.filter((point) => point.figures[key]);
    return {
      label: target.name,
      data: shown.map((point) => ({x: place(point), y: point.figures[key][0], point})),
      spread: style.whiskers ? shown.map((point) => point.figures[key].slice(1)) : null,
      borderColor: colours.series[index % 4],
      backgroundColor: colours.back,
      borderDash: dashes[index % 4],
      borderWidth: 2.5,
      pointStyle: shapes[index % 4],
      pointRadius: 4.5,
      pointBorderWidth: 2,
      pointHoverRadius: 6,
      ...style,
    };
  }

  function bandSets(target, index, metric) {
    const colour = colours.series[index % 4];
    const share = data.targets.length > 1 ? .6 : 1;
    const edge = {pointRadius: 0, pointHitRadius: 8, pointHoverRadius: 4, borderDash: []};
    return [
      series(target, index, `p50_${metric}_ms`, {label: `${target.name} p50`, whiskers: true, order: 0}),
      series(target, index, `p90_${metric}_ms`, {
        ...edge, label: `${target.name} p90`, borderWidth: 1.25, borderColor: faded(colour, .8),
        backgroundColor: faded(colour, .26 * share), fill: '-1', order: 1,
      }),
      series(target, index, `p99_${metric}_ms`, {
        ...edge, label: `${target.name} p99`, borderWidth: 1, borderColor: faded(colour, .45),
        backgroundColor: faded(colour, .11 * share), fill: '-1', order: 2,
      }),
    ];
  }

  const add = (id, config) => charts.push(new Chart(document.getElementById(id), config));

  function addRates(id, key, unit) {
    const sets = data.targets.map((target, index) => series(target, index, key, {whiskers: true}));
    add(id, {type: 'line', data: {datasets: sets}, plugins: [whiskers, limitLines],
      options: options(unit, {x: loadAxis(), y: valueAxis(unit)})});
  }

  function addBands(metric) {
    const sets = data.targets.flatMap((target, index) => bandSets(target, index, metric));
    const limits = limitsOf(metric);
    const most = Math.max(0, ...sets.flatMap((set) => set.data.map((one) => one.y)));
    const shown = limits.map((one) => one.limit).filter((limit) => limit <= 2.5 * most);
    add(metric, {type: 'line', data: {datasets: sets}, plugins: [whiskers, limitLines],
      options: options('ms', {x: loadAxis(), y: valueAxis('ms', 1.08 * Math.max(0, ...shown))}, {
        plugins: {limitLines: {limits}},
      })});
  }

  // Where a user is served well: left of the one limit and above the other; without limits, of the middle of all.
  const quadrants = {
    id: 'quadrants',
    beforeDatasetsDraw(chart, _, {x: limitX, y: limitY}) {
      const {ctx, chartArea: {left, right, top, bottom}, scales: {x, y}} = chart;
      if (limitX === null || limitY === null) return;
      const px = Math.min(Math.max(x.getPixelForValue(limitX), left), right);
      const py = Math.min(Math.max(y.getPixelForValue(limitY), top), bottom);
      ctx.save();
      ctx.fillStyle = `rgba(${colours.good}, .1)`;
      ctx.fillRect(left, top, px - left, py - top);
      ctx.strokeStyle = data.limits.length ? colours.limit : colours.soft;
      ctx.setLineDash([5, 4]);
      ctx.lineWidth = 1.25;
      ctx.beginPath();
      if (px > left && px < right) { ctx.moveTo(px, top); ctx.lineTo(px, bottom); }
      if (py > top && py < bottom) { ctx.moveTo(left, py); ctx.lineTo(right, py); }
      ctx.stroke();
      ctx.fillStyle = colours.soft;
      ctx.font = '12px system-ui, sans-serif';
      ctx.textBaseline = 'top';
      if (py - top > 24) ctx.fillText('soon and fast', left + 8, top + 6);
      ctx.textBaseline = 'bottom';
      ctx.textAlign = 'right';
      if (bottom - py > 24) ctx.fillText('late and slow', right - 8, bottom - 6);
      ctx.restore();
    },
    // Each point is called by its load, where there is room.
    afterDatasetsDraw(chart) {
      const {ctx, chartArea: {left, right, top}} = chart;
      const taken = [];
      ctx.save();
      ctx.font = '600 12px system-ui, sans-serif';
      ctx.textBaseline = 'middle';
      ctx.lineWidth = 4;
      ctx.lineJoin = 'round';
      chart.data.datasets.forEach((dataset, index) => {
        chart.getDatasetMeta(index).data.forEach((element, i) => {
          const text = dataset.data[i].point.load;
          const width = ctx.measureText(text).width;
          const free = [[10, -11], [10, 12], [-10 - width, -11], [-10 - width, 12]]
              .map(([dx, dy]) => [element.x + dx, element.y + dy])
              .find(([x, y]) => x >= left && x + width <= right && y > top + 6 &&
                  taken.every(([x0, y0, w0]) => Math.abs(y - y0) > 13 || x > x0 + w0 + 3 || x0 > x + width + 3));
          if (!free) return;
          taken.push([free[0], free[1], width]);
          ctx.strokeStyle = colours.back;
          ctx.fillStyle = dataset.borderColor;
          ctx.strokeText(text, ...free);
          ctx.fillText(text, ...free);
        });
      });
      ctx.restore();
    },
  };

  function addQuadrant() {
    const middle = (values) => (values.length ? [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] : null);
    const sets = data.targets.map((target, index) => {
      const set = series(target, index, 'p50_tpot_ms', {showLine: true});
      set.data = set.data.filter((one) => one.point.figures.p50_ttft_ms && one.y > 0)
          .map(({point, y}) => ({x: point.figures.p50_ttft_ms[0], y: 1000 / y, point}));
      return set;
    });
    const all = sets.flatMap((set) => set.data);
    const limits = (metric) => data.limits.filter((limit) => limit.metric === metric).map((limit) => limit.limit);
    const ttft = limits('ttft'), tpot = limits('tpot');
    const lines = data.limits.length
        ? {x: ttft.length ? Math.min(...ttft) : Infinity, y: tpot.length ? 1000 / Math.min(...tpot) : 0}
        : {x: middle(all.map((one) => one.x)), y: middle(all.map((one) => one.y))};
    const wide = all.length > 1 && Math.max(...all.map((one) => one.x)) > 30 * Math.min(...all.map((one) => one.x));
    const style = axisStyle();
    const x = wide
        ? {...style, type: 'logarithmic', title: title('TTFT p50, ms'),
          ticks: {...style.ticks, callback: (value) => (/^[125]/.test(String(value).replace(/^0\.0*/, '')) &&
              /^[125]0*$/.test(String(value).replace(/^0\.0*/, '')) ? tick(value) : '')}}
        : {...valueAxis('TTFT p50, ms'), type: 'linear'};
    const speed = 'tokens per second of a request';
    add('quadrant', {type: 'scatter', data: {datasets: sets}, plugins: [quadrants],
      options: options('tok/s', {x, y: valueAxis(speed)}, {plugins: {
        quadrants: lines,
        tooltip: {callbacks: {label: (item) => [short(item.dataset.label),
          `load ${item.raw.point.load}`, `TTFT ${number(item.raw.x)} ms`, `${number(item.raw.y)} tok/s`]}},
      }})});
  }

  // Slanted lines, so that what failed is seen without colour.
  function hatch(context) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const ctx = tile.getContext('2d');
    ctx.fillStyle = faded(colours.failed, .45);
    ctx.fillRect(0, 0, 6, 6);
    ctx.strokeStyle = colours.failed;
    ctx.lineWidth = 1.5;
    for (const from of [-6, 0, 6]) {
      ctx.beginPath();
      ctx.moveTo(from, 6);
      ctx.lineTo(from + 6, 0);
      ctx.stroke();
    }
    return context.createPattern(tile, 'repeat');
  }

  function addTimeLine(canvas, line, most) {
    const rows = line.rows.map(([planned, sent, first, ended, failed], row) => {
      const begun = first ?? ended;
      return {row, queued: [planned, sent], prefill: [sent, failed && first === null ? sent : begun],
        decode: [begun, failed ? begun : ended], failed: failed ? [first ?? sent, ended] : [ended, ended]};
    });
    const pattern = hatch(canvas.getContext('2d'));
    const parts = [['queued', 'waiting to be sent', colours.queued], ['prefill', 'to the first token', colours.prefill],
      ['decode', 'answer', colours.decode], ['failed', 'failed or cut', pattern]];
    const sets = parts.map(([part, label, colour]) => ({
      label,
      data: rows.map((row) => ({x: row[part].map((ms) => ms / 1000), y: row.row + 1})),
      backgroundColor: colour,
      grouped: false,
      barPercentage: 1,
      categoryPercentage: rows.length > 60 ? 1 : .82,
    }));
    const style = axisStyle();
    charts.push(new Chart(canvas, {
      type: 'bar', data: {labels: rows.map((row) => row.row + 1), datasets: sets},
      options: options('s', {
        x: {...style, min: 0, max: most / 1000, title: title('seconds from the start of the run'),
          ticks: {...style.ticks, callback: (value) => tick(value)}},
        y: {...style, grid: {display: false, borderColor: colours.line}, ticks: {display: false},
          title: title('requests, in the order planned')},
      }, {indexAxis: 'y', interaction: {mode: 'nearest', intersect: true, axis: 'xy'}, plugins: {
        legend: {display: true, position: 'top', align: 'start',
          labels: {color: colours.ink, boxWidth: 18, boxHeight: 10, font: {size: 12},
            filter: (item) => item.datasetIndex < 3 || rows.some((row) => row.failed[1] > row.failed[0])}},
        tooltip: {callbacks: {
          title: (items) => `request ${items[0].label} of those shown`,
          label: (item) => `${item.dataset.label}: ${number(item.raw.x[1] - item.raw.x[0])} s`,
        }},
      }}),
    }));
  }

  // The time lines of the load that is chosen, one per target, on the same scale.
  function addTimeLines() {
    const place = document.getElementById('lines');
    if (!place) return;
    const load = document.getElementById('load').value;
    const lines = data.times.filter((line) => line.load === load);
    place.replaceChildren();
    const most = Math.max(...lines.flatMap((line) => line.rows.map((row) => row[3])), 1);
    const sampled = [];
    for (const line of lines) {
      if (data.targets.length > 1) {
        const name = document.createElement('h3');
        name.textContent = data.targets[line.target].name;
        place.append(name);
      }
      const box = document.createElement('div');
      box.className = 'canvas';
      box.style.height = `${Math.min(Math.max(line.rows.length * 7, 90), 620) + 90}px`;
      const canvas = document.createElement('canvas');
      canvas.setAttribute('role', 'img');
      canvas.setAttribute('aria-label',
          `Time line of ${line.rows.length} requests of ${data.targets[line.target].name} at load ${line.load}.`);
      box.append(canvas);
      place.append(box);
      addTimeLine(canvas, line, most);
      if (line.rows.length < line.requests) sampled.push(`${line.rows.length} of ${line.requests} requests are shown, evenly chosen.`);
    }
    document.getElementById('sampled').textContent = [...new Set(sampled)].join(' ');
  }

  function fillChoice() {
    const choice = document.getElementById('load');
    if (!choice) return;
    const loads = [...new Set(data.times.map((line) => line.load))];
    for (const load of loads) choice.add(new Option(load, load));
    const inside = data.times.filter((line) => data.targets[line.target].points.some(
        (point) => point.load === line.load && point.within));
    choice.value = inside.length ? inside[inside.length - 1].load : loads[loads.length - 1];
    choice.parentElement.hidden = loads.length < 2;
    choice.addEventListener('change', draw);
  }

  // What the marks of all charts mean.
  function drawLegend() {
    const place = document.getElementById('legend');
    place.replaceChildren();
    const entry = (text, paint) => {
      const span = document.createElement('span'), canvas = document.createElement('canvas');
      const scale = Math.max(2, devicePixelRatio);
      canvas.width = 34 * scale;
      canvas.height = 16 * scale;
      canvas.setAttribute('aria-hidden', 'true');
      const ctx = canvas.getContext('2d');
      ctx.scale(scale, scale);
      paint(ctx);
      span.append(canvas, short(text));
      place.append(span);
    };
    const stroke = (ctx, colour, width, dash, y = 8) => {
      ctx.strokeStyle = colour;
      ctx.lineWidth = width;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(0, y);
      ctx.lineTo(34, y);
      ctx.stroke();
    };
    if (data.targets.length > 1) {
      data.targets.forEach((target, i) => entry(target.name, (ctx) => stroke(ctx, colours.series[i % 4], 2.5, dashes[i % 4])));
    }
    const colour = data.targets.length > 1 ? colours.soft : colours.series[0];
    entry('p50', (ctx) => stroke(ctx, colour, 2.5, []));
    entry('up to p90', (ctx) => {
      ctx.fillStyle = faded(colour, .3);
      ctx.fillRect(0, 2, 34, 12);
      stroke(ctx, faded(colour, .8), 1.25, [], 2.6);
    });
    entry('up to p99', (ctx) => {
      ctx.fillStyle = faded(colour, .12);
      ctx.fillRect(0, 2, 34, 12);
      stroke(ctx, faded(colour, .45), 1, [], 2.5);
    });
    if (points.some((point) => Object.values(point.figures).some(([, least, most]) => least !== most))) {
      entry('least to most of repeats', (ctx) => {
        ctx.strokeStyle = colour;
        ctx.lineWidth = 1.5;
        ctx.beginPath();
        for (const [x0, y0, x1, y1] of [[17, 2, 17, 14], [13, 2, 21, 2], [13, 14, 21, 14]]) {
          ctx.moveTo(x0, y0);
          ctx.lineTo(x1, y1);
        }
        ctx.stroke();
      });
    }
    if (data.limits.length) entry('limit', (ctx) => stroke(ctx, colours.limit, 1.5, [5, 4]));
  }

  function draw() {
    colours = dark.matches && !print.matches && !printing ? palettes.dark : palettes.light;
    charts.forEach((chart) => chart.destroy());
    charts = [];
    Chart.defaults.font.family = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
    addRates('requests', 'request_throughput', 'req/s');
    addRates('output', 'output_throughput', 'tok/s');
    for (const metric of ['ttft', 'tpot', 'itl']) addBands(metric);
    addQuadrant();
    addTimeLines();
    drawLegend();
  }

  // On paper everything is open, and on white.
  let printing = false;
  const opened = new Set();
  function beforePrint() {
    printing = true;
    for (const details of document.querySelectorAll('details:not([open])')) {
      details.open = true;
      opened.add(details);
    }
    draw();
  }
  function afterPrint() {
    printing = false;
    opened.forEach((details) => { details.open = false; });
    opened.clear();
    draw();
  }

  fillChoice();
  draw();
  dark.addEventListener('change', draw);
  print.addEventListener('change', () => (print.matches ? beforePrint() : afterPrint()));
  addEventListener('beforeprint', beforePrint);
  addEventListener('afterprint', afterPrint);
})();
