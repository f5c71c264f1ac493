/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * chart.js - the course as a chart: held bytes by the parts of names, one above the other, with
 * lines of reserved and requested bytes, and below it the share of fragmentation. It shows a window
 * of moments, which zooming changes.
 */
function makeChart(canvas, onMoment) {
    const {LAST, PEAK, EVERY, COUNT, begin, end, backed, name, nameOf, rank, sums, swatches, parts, frames,
           refusedMoment, hasFree, freeAt, hasTimes, timeOf, momentOf, bytesText, timeText,
           WORD, shown, timeShown} = course;
    const EVENT = WORD === 'time' ? 'Time' : 'Event', hasClock = hasTimes && WORD !== 'time';
    const LAYERS = Math.min(parts.length, swatches.length);
    const LEFT = 84, RIGHT = 16, TOP = 14, AXIS = 48, LINES = 4;
    const STRIP = hasFree ? 46 : 0; /* pixels of the share of fragmentation, below the axis */
    const LEAST_SPAN = 4; /* moments of the smallest window */
    let from = 0, to = Math.max(LAST, 1), chosen = 0; /* moments */
    let drawn = null; /* what the last drawing shows, for the pointer */

    /* ---- places ---------------------------------------------------------------------------- */

    const plotWidth = () => Math.max(Math.floor(canvas.clientWidth) - LEFT - RIGHT, 20);
    const byTime = () => hasTimes && find('by-time').checked;

    const timeAt = share => timeOf(from) + share * (timeOf(to) - timeOf(from));

    /* A moment at a share of the window, and the reverse. */
    const momentAt = share => byTime() ? momentOf(timeAt(share)) : from + share * (to - from);

    function shareOf(moment) {
        if (!byTime())
            return (moment - from) / (to - from);
        const first = timeOf(from), last = timeOf(to);
        return last > first ? (timeOf(moment) - first) / (last - first) : 0;
    }

    /* ---- the pixels ------------------------------------------------------------------------ */

    /* The columns of moments that a pixel shows: from `first` up to, and without, `first` of the next. */
    function columnsOf(width) {
        const firsts = new Float64Array(width + 1), count = sums.held.low.length;
        for (let x = 0; x <= width; x++)
            firsts[x] = Math.min(Math.floor(momentAt(x / width) / EVERY), count - 1);
        return firsts;
    }

    function extremes(series, firsts, x) {
        let low = Infinity, high = 0, where = firsts[x];
        for (let i = firsts[x]; i < Math.max(firsts[x + 1], firsts[x] + 1); i++) {
            low = Math.min(low, series.low[i]);
            if (series.high[i] > high) {
                high = series.high[i];
                where = i;
            }
        }
        return {low, high, where};
    }

    /* For each pixel the extremes, and the moment with the most held bytes, which the layers show. */
    function samplesOf(width) {
        const firsts = columnsOf(width), samples = [];
        for (let x = 0; x < width; x++) {
            const held = extremes(sums.held, firsts, x);
            const moment = held.where * EVERY, free = freeAt(moment);
            samples.push({moment, free, held: held.high, reserved: extremes(sums.reserved, firsts, x),
                          requested: extremes(sums.requested, firsts, x)});
        }
        return samples;
    }

    /* The first pixel whose moment is not below another; the number of pixels if there is none. */
    const pixelOf = (moments, moment) => countBefore(moments, one => one < moment);

    /* Held bytes of each layer at the moment of each pixel. */
    function layersOf(samples) {
        const width = samples.length, moments = Float64Array.from(samples, sample => sample.moment);
        const layers = Array.from({length: LAYERS}, () => new Float64Array(width + 1));
        for (let i = 0; i < COUNT; i++) {
            if (begin[i] > moments[width - 1] || end[i] <= moments[0])
                continue;
            const layer = layers[rank[i]];
            layer[pixelOf(moments, begin[i])] += backed[i];
            layer[end[i] === Infinity ? width : pixelOf(moments, end[i])] -= backed[i];
        }
        for (const layer of layers)
            for (let x = 1; x < width; x++)
                layer[x] += layer[x - 1];
        return layers;
    }

    /* ---- drawing --------------------------------------------------------------------------- */

    function drawBytes(c, width, height, most) {
        c.textAlign = 'right';
        for (let i = 0; i <= LINES; i++) {
            const y = TOP + height - i / LINES * height;
            c.fillText(bytesText(most / LINES * i), LEFT - 8, y + 4);
            c.globalAlpha = 0.2;
            c.fillRect(LEFT, y, width, 1);
            c.globalAlpha = 1;
        }
    }

    /* The moments below the plot: fewer ones where their texts would touch. */
    function drawMoments(c, width, height) {
        const number = share => byTime() && !hasClock ? timeShown(timeAt(share)) : shown(Math.round(momentAt(share)));
        const clock = share => hasClock ? timeText(timeOf(Math.round(momentAt(share)))) : '';
        const textsAt = share => [`${share ? '' : `${WORD} `}${number(share)}`, clock(share)];
        const shares = lines => Array.from({length: lines + 1}, (_, i) => i / lines);
        const widths = shares(LINES).flatMap(textsAt).map(text => c.measureText(text).width);
        const room = 1.5 * (Math.max(...widths) + 8); /* those at the sides have all of their text inside */
        const lines = [LINES, 2].find(lines => room <= width / lines) || 1;
        for (const share of shares(lines)) {
            c.textAlign = share === 1 ? 'right' : share ? 'center' : 'left';
            textsAt(share).forEach((text, row) => c.fillText(text, LEFT + share * width, TOP + height + 18 + 16 * row));
        }
    }

    function drawLayers(c, samples, layers, toY) {
        const width = samples.length, base = new Float64Array(width);
        layers.forEach((layer, rank) => {
            c.beginPath();
            c.moveTo(LEFT, toY(base[0]));
            for (let x = 0; x < width; x++) {
                c.lineTo(LEFT + x, toY(base[x] + layer[x]));
                c.lineTo(LEFT + x + 1, toY(base[x] + layer[x]));
            }
            for (let x = width - 1; x >= 0; x--) {
                c.lineTo(LEFT + x + 1, toY(base[x]));
                c.lineTo(LEFT + x, toY(base[x]));
                base[x] += layer[x];
            }
            c.fillStyle = swatches[rank];
            c.fill();
        });
    }

    function drawLine(c, samples, key, toY, dash) {
        c.setLineDash(dash);
        c.lineWidth = 1.5;
        c.strokeStyle = c.textColor;
        c.beginPath();
        samples.forEach((sample, x) => {
            c.lineTo(LEFT + x + 0.5, toY(sample[key].high));
            if (sample[key].low < sample[key].high)
                c.lineTo(LEFT + x + 0.5, toY(sample[key].low));
        });
        c.stroke();
        c.setLineDash([]);
    }

    /* What fragmentation costs: the share of reserved bytes that is free in pages with ranges. */
    const split = ({free, reserved}) => free && reserved.high ? Math.min(free.split / reserved.high, 1) : 0;

    function drawStrip(c, samples, top) {
        c.fillStyle = c.textColor;
        c.textAlign = 'right';
        c.fillText('100 %', LEFT - 8, top + 10);
        c.fillText('0 %', LEFT - 8, top + STRIP);
        c.textAlign = 'left';
        c.fillText('fragmentation', LEFT + 8, top + 16);
        c.globalAlpha = 0.12;
        c.fillRect(LEFT, top, samples.length, STRIP);
        c.globalAlpha = 0.6;
        samples.forEach((sample, x) => c.fillRect(LEFT + x, top + STRIP, 1, -split(sample) * STRIP));
        c.globalAlpha = 1;
    }

    /* A line at a moment between two heights. */
    function drawMark(c, moment, width, top, bottom, color, dash) {
        const x = LEFT + shareOf(moment) * width;
        if (x < LEFT || x > LEFT + width)
            return;
        c.setLineDash(dash);
        c.lineWidth = 1;
        c.strokeStyle = color;
        c.beginPath();
        c.moveTo(x, top);
        c.lineTo(x, bottom);
        c.stroke();
        c.setLineDash([]);
    }

    /* A canvas of the size of the chart, to draw on in units of the page. */
    function prepare(target) {
        const scale = devicePixelRatio || 1;
        target.width = canvas.clientWidth * scale;
        target.height = canvas.clientHeight * scale;
        const c = target.getContext('2d');
        c.scale(scale, scale);
        c.font = '12px sans-serif';
        c.textColor = getComputedStyle(canvas).color;
        return c;
    }

    /* Everything but the chosen moment, which changes far more often. */
    const still = document.createElement('canvas');

    function drawStill({width, height, samples, layers, most}) {
        const c = prepare(still), toY = bytes => TOP + height - bytes / most * height;
        drawLayers(c, samples, layers, toY);
        c.fillStyle = c.strokeStyle = c.textColor;
        drawBytes(c, width, height, most);
        drawMoments(c, width, height);
        drawLine(c, samples, 'reserved', toY, []);
        drawLine(c, samples, 'requested', toY, [3, 3]);
        for (const moment of frames)
            drawMark(c, moment, width, TOP, TOP + height, '#8888', [2, 3]);
        for (const moment of refusedMoment) /* above the layers, which many of them would hide */
            drawMark(c, moment, width, 2, TOP - 2, '#d55e00', []);
        drawMark(c, PEAK, width, TOP, TOP + height, c.textColor, [6, 3]);
        if (STRIP)
            drawStrip(c, samples, TOP + height + AXIS);
    }

    /* What a window of moments shows; `view` tells it from others. */
    function measure(view) {
        const width = plotWidth(), height = canvas.clientHeight - TOP - AXIS - (STRIP ? STRIP + 6 : 0);
        const samples = samplesOf(width), layers = layersOf(samples);
        const most = samples.reduce((sum, one) => Math.max(sum, one.reserved.high, one.held), 1);
        drawn = {view, width, height, samples, layers, most};
        drawStill(drawn);
        canvas.setAttribute('aria-label', `Held, reserved and requested bytes from ${WORD} ` +
                            `${shown(Math.round(from))} to ${shown(Math.round(to))}, at most ${bytesText(most)}`);
    }

    function draw() {
        const view = [from, to, canvas.clientWidth, canvas.clientHeight, devicePixelRatio, byTime(),
                      getComputedStyle(canvas).color].join(' ');
        if (!drawn || drawn.view !== view)
            measure(view);
        const c = prepare(canvas);
        c.drawImage(still, 0, 0, canvas.clientWidth, canvas.clientHeight);
        drawMark(c, chosen, drawn.width, TOP, TOP + drawn.height, c.textColor, []);
    }

    /* ---- the window ------------------------------------------------------------------------ */

    function show(first, last) {
        const span = Math.min(Math.max(last - first, LEAST_SPAN), Math.max(LAST, 1));
        from = Math.min(Math.max(first, 0), Math.max(LAST, 1) - span);
        to = from + span;
        draw();
    }

    /* Keeps a moment where it is. */
    function zoom(factor, around) {
        show(around - (around - from) * factor, around + (to - around) * factor);
    }

    const middle = () => chosen >= from && chosen <= to ? chosen : (from + to) / 2;

    /* ---- pointer and keys ------------------------------------------------------------------ */

    /* The share of the reserved bytes that no range holds: what fragmentation and empty pages cost. */
    const unused = ({held, reserved}) => reserved.high ? Math.max(1 - held / reserved.high, 0) : 0;
    const percent = share => `${(100 * share).toFixed(1)} %`;

    /* The range of a layer at a height of it: the oldest ones are below. -1: it is left out. */
    function rangeAt(layer, bytes, moment) {
        for (let i = 0; i < COUNT && begin[i] <= moment; i++) {
            if (rank[i] !== layer || moment >= end[i])
                continue;
            bytes -= backed[i];
            if (bytes < 0)
                return i;
        }
        return -1;
    }

    /* The layer at a pixel, and the allocation in it. */
    function describeLayer(x, bytes) {
        let above = bytes, layer = 0;
        while (layer < drawn.layers.length && above >= drawn.layers[layer][x])
            above -= drawn.layers[layer++][x];
        if (layer === drawn.layers.length)
            return '';
        const i = rangeAt(layer, above, drawn.samples[x].moment);
        const one = i < 0 ? '' : `, here ${bytesText(backed[i])} for ${nameOf(name[i])}, ${course.livesText(i)}`;
        const part = layer < swatches.length - 1 ? parts[layer] : 'others';
        return `; ${part}: ${bytesText(drawn.layers[layer][x])}${one}`;
    }

    function describe(x, y) {
        const {samples, most, height} = drawn, sample = samples[x], {free} = sample;
        const time = hasClock ? ` (${timeText(timeOf(sample.moment))})` : '';
        const parted = free ? ` (${percent(split(sample))} between ranges; largest free range ` +
            `${bytesText(free.largest)})` : '';
        return `${EVENT} ${shown(sample.moment)}${time}: ${bytesText(sample.held)} held, ` +
            `${bytesText(sample.reserved.high)} reserved, ` +
            `of which ${percent(unused(sample))} is not held${parted}, ` +
            `${bytesText(sample.requested.high)} requested${describeLayer(x, (TOP + height - y) / height * most)}`;
    }

    function pixelAt(event) {
        return Math.min(Math.max(Math.floor(event.offsetX - LEFT), 0), drawn.width - 1);
    }

    let pressed = -1; /* the pixel at which a drag began */

    function release(event) {
        const a = Math.min(pressed, pixelAt(event)), b = Math.max(pressed, pixelAt(event));
        if (pressed >= 0 && b - a > 4)
            show(momentAt(a / drawn.width), momentAt(b / drawn.width));
        else if (pressed >= 0)
            onMoment(drawn.samples[b].moment);
        pressed = -1;
    }

    function press(event) {
        const step = Math.max((to - from) / drawn.width, 1);
        const actions = {'ArrowLeft': () => onMoment(chosen - step), 'ArrowRight': () => onMoment(chosen + step),
                         '+': () => zoom(0.5, middle()), '-': () => zoom(2, middle()), '0': () => show(0, LAST)};
        if (!actions[event.key] || event.ctrlKey || event.metaKey)
            return;
        event.preventDefault();
        actions[event.key]();
    }

    canvas.addEventListener('pointerdown', event => pressed = pixelAt(event));
    canvas.addEventListener('pointerup', release);
    canvas.addEventListener('pointermove', event =>
        find('hovered').textContent = describe(pixelAt(event), event.offsetY));
    canvas.addEventListener('wheel', event => {
        event.preventDefault();
        zoom(event.deltaY < 0 ? 0.8 : 1.25, momentAt(pixelAt(event) / drawn.width));
    }, {passive: false});
    canvas.addEventListener('keydown', press);
    find('zoom-in').addEventListener('click', () => zoom(0.5, middle()));
    find('zoom-out').addEventListener('click', () => zoom(2, middle()));
    find('zoom-all').addEventListener('click', () => show(0, LAST));
    find('by-time').disabled = !hasTimes;
    find('by-time').addEventListener('change', draw);

    function choose(moment) {
        chosen = moment;
        const held = sums.held.high, reserved = sums.reserved.high;
        const at = Math.min(Math.floor(moment / EVERY), held.length - 1);
        if (document.activeElement === canvas)
            find('hovered').textContent = `${EVENT} ${shown(moment)}: ${bytesText(held[at])} held, ` +
                `${bytesText(reserved[at])} reserved`;
        draw();
    }

    return {draw, choose};
}
