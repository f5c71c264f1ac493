/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * course.js - reads the tables of the page (data.h), which have a course. A moment is a number of
 * events, or the rank of a time; the page shows the time then. A range lives at the moments from
 * its begin up to, and without, its end.
 */
'use strict';
const find = id => document.getElementById(id);

/* How many elements at the start of a sorted array are before something. */
function countBefore(sorted, isBefore) {
    let low = 0, high = sorted.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (isBefore(sorted[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const course = (() => {
    const data = find('explorer').dataset;
    const LAST = Number(data.events), PEAK = Number(data.peak);
    const WORD = data.word, PLACE = data.place; /* what a moment is, and what has the ranges */

    /* ---- the tables ---------------------------------------------------------------------- */

    /* Reads decimal numbers, `width` of them in a row, into one array for each column. */
    function readColumns(name, width) {
        const text = find('data-' + name).textContent;
        let rows = 0;
        for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1))
            rows++;
        const columns = Array.from({length: width}, () => new Float64Array(rows));
        let value = 0, at = 0;
        for (let i = 0; i < text.length; i++) {
            const c = text.charCodeAt(i) - 48;
            if (c >= 0) {
                value = value * 10 + c;
                continue;
            }
            columns[at % width][Math.floor(at / width)] = value;
            at++;
            value = 0;
        }
        return columns;
    }

    const names = find('data-names').textContent.split('\n').slice(0, -1);
    const memories = find('data-memories').textContent.split('\n').slice(0, -1);
    const [pageNumber, pageDedicated, pageElastic, pageMemory] = readColumns('pages', 4);
    const [changeMoment, changePage, changeBytes] = readColumns('changes', 3);
    const [stretchMoment, stretchPage, stretchBegin, stretchEnd, stretchHasMemory] = readColumns('stretches', 5);
    const [begin, end, page, offset, size, requested, name] = readColumns('ranges', 7);
    const [backedRow, backedBytes] = readColumns('backed', 2);
    const [refusedMoment, refusedSize, refusedName] = readColumns('refusals', 3);
    const [freeMoment, freeSplit, freeLargest] = readColumns('free', 3);
    const [frames] = readColumns('frames', 1);
    const [timeMoment, timeNs] = readColumns('times', 2);
    const COUNT = begin.length;

    /* Begins are written as differences, ends as lifetimes. */
    for (let i = 0, before = 0; i < COUNT; i++) {
        begin[i] += before;
        end[i] = end[i] ? begin[i] + end[i] : Infinity;
        before = begin[i];
    }

    /* What ranges hold: the bytes that have memory. */
    const backed = Float64Array.from(size);
    backedRow.forEach((row, i) => backed[row] = backedBytes[i]);

    const isNamed = names.some(text => text);

    /* Without names in the trace, ranges of one requested size have its text as their name. */
    function nameBySize() {
        const indices = new Map();
        names.length = 0;
        for (let i = 0; i < COUNT; i++) {
            if (!indices.has(requested[i]))
                indices.set(requested[i], names.push(bytesText(requested[i])) - 1);
            name[i] = indices.get(requested[i]);
        }
    }

    const livesAt = (i, moment) => begin[i] <= moment && moment < end[i];
    const nameOf = i => names[i] || '(unnamed)';

    /* ---- text ---------------------------------------------------------------------------- */

    function bytesText(bytes) {
        const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
        let unit = 0;
        while (bytes >= 1024 && unit + 1 < units.length) {
            bytes /= 1024;
            unit++;
        }
        return `${unit ? String(Number(bytes.toFixed(2))) : bytes} ${units[unit]}`;
    }

    function timeText(ns) {
        const units = [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];
        const [size, unit] = units.find(([least]) => ns >= least) || [1, 'ns'];
        return `${Number((ns / size).toFixed(2))} ${unit}`;
    }

    const count = (number, what) => `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`;

    /* ---- colours ------------------------------------------------------------------------- */

    /* Colours that colour-blind people tell apart: Okabe and Ito, "Color Universal Design", 2008.
       The second seven names have them with stripes; the names after those are grey. */
    const PALETTE = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442'];
    const OTHERS = '#8c8c8c';

    /* Groups of ranges that have one colour: their texts, and the index of a range's group. */
    function groupByName() {
        const indices = new Map(), texts = [], ofName = names.map(text => {
            const part = (isNamed ? /^[./:]*[^./:]*/.exec(text)[0] : text) || '(unnamed)'; /* up to a separator */
            if (!indices.has(part))
                indices.set(part, texts.push(part) - 1);
            return indices.get(part);
        });
        return {texts, of: i => ofName[name[i]]};
    }

    function groupBySize() {
        const texts = Array.from({length: 64}, (_, power) => `from ${bytesText(2 ** power)}`);
        return {texts, of: i => Math.floor(Math.log2(Math.max(size[i], 1)))};
    }

    /* Ranks groups by what they hold at the peak, then by what they ever held. `share` is that of
       the groups with a colour of their own. */
    function rankGroups({texts, of}) {
        const held = new Float64Array(texts.length), ever = new Float64Array(texts.length);
        for (let i = 0; i < COUNT; i++) {
            held[of(i)] += livesAt(i, PEAK) ? backed[i] : 0;
            ever[of(i)] += Math.max(backed[i], 1); /* ranges without memory have a colour as well */
        }
        const order = [...texts.keys()].filter(group => ever[group]);
        order.sort((a, b) => held[b] - held[a] || ever[b] - ever[a]);
        const sum = (groups, bytes) => groups.reduce((all, group) => all + bytes[group], 0);
        const share = sum(order.slice(0, 2 * PALETTE.length), ever) / (sum(order, ever) || 1);
        const ranks = new Uint32Array(texts.length);
        order.forEach((group, rank) => ranks[group] = Math.min(rank, 2 * PALETTE.length));
        const rank = Uint8Array.from({length: COUNT}, (_, i) => ranks[of(i)]);
        return {parts: order.map(group => texts[group]), share, rank};
    }

    /* What to fill with, for a rank: a colour, or a pattern with stripes, which takes longer to draw. */
    function swatch(rank) {
        const color = rank < 2 * PALETTE.length ? PALETTE[rank % PALETTE.length] : OTHERS;
        if (rank < PALETTE.length || color === OTHERS)
            return color;
        const tile = document.createElement('canvas');
        tile.width = tile.height = 8;
        const c = tile.getContext('2d');
        c.fillStyle = color;
        c.fillRect(0, 0, 8, 8);
        c.strokeStyle = '#fff';
        c.lineWidth = 2;
        c.beginPath();
        for (const x of [-8, 0, 8]) {
            c.moveTo(x, 8);
            c.lineTo(x + 8, 0);
        }
        c.stroke();
        return c.createPattern(tile, 'repeat');
    }

    const swatches = Array.from({length: 2 * PALETTE.length + 1}, (_, rank) => swatch(rank));

    /* ---- what lives at a moment ---------------------------------------------------------- */

    /* Pages with their bytes, and the ranges in them in the order of their offsets. */
    function stateAt(moment) {
        const bytes = new Map();
        for (let i = 0; i < changeMoment.length && changeMoment[i] <= moment; i++)
            bytes.set(changePage[i], changeBytes[i]);
        const pages = new Map();
        for (const [index, now] of bytes)
            if (now)
                pages.set(index, {index, bytes: now, held: 0, extent: now, ranges: []});
        let stretches = 0; /* of elastic pages, so far; a page extends to the highest one */
        for (; stretches < stretchMoment.length && stretchMoment[stretches] <= moment; stretches++) {
            const place = pages.get(stretchPage[stretches]);
            if (place)
                place.extent = Math.max(place.extent, stretchEnd[stretches]);
        }
        let held = 0, live = 0;
        for (let i = 0; i < COUNT && begin[i] <= moment; i++) {
            const place = moment < end[i] && pages.get(page[i]);
            if (!place)
                continue;
            place.ranges.push(i);
            place.held += backed[i];
            place.extent = Math.max(place.extent, offset[i] + size[i]);
            held += backed[i];
            live++;
        }
        for (const place of pages.values())
            place.ranges.sort((a, b) => offset[a] - offset[b]);
        const sorted = [...pages.values()].sort((a, b) => pageMemory[a.index] - pageMemory[b.index] ||
                                                          pageNumber[a.index] - pageNumber[b.index]);
        const reserved = sorted.reduce((sum, place) => sum + place.bytes, 0);
        const extent = sorted.reduce((most, place) => Math.max(most, place.extent), 0); /* of the largest page */
        return {moment, pages: sorted, extent, stretches, held, live, reserved};
    }

    /* ---- sums over time ------------------------------------------------------------------ */

    /* The least and the most bytes of each column, which has EVERY moments. */
    const EVERY = Number(data.column) || 1;

    /* From the ranges: a column for each moment. */
    function sumRanges(bytes) {
        const sums = new Float64Array(LAST + 2);
        for (let i = 0; i < COUNT; i++) {
            sums[begin[i]] += bytes[i];
            if (end[i] <= LAST)
                sums[end[i]] -= bytes[i];
        }
        for (let i = 1; i <= LAST; i++)
            sums[i] += sums[i - 1];
        return {low: sums, high: sums};
    }

    /* Within a moment a page may come and go: the most is that of its changes one after another. */
    function sumPages() {
        const low = new Float64Array(LAST + 1), high = new Float64Array(LAST + 1);
        const bytes = new Map();
        for (let moment = 0, next = 0, now = 0; moment <= LAST; moment++) {
            const first = next;
            for (; next < changeMoment.length && changeMoment[next] === moment; next++) {
                now += changeBytes[next] - (bytes.get(changePage[next]) || 0);
                bytes.set(changePage[next], changeBytes[next]);
                high[moment] = Math.max(high[moment], now);
            }
            low[moment] = now;
            if (next === first)
                high[moment] = now;
        }
        return {low, high};
    }

    function readSums() {
        if (!Number(data.column))
            return {requested: sumRanges(requested), held: sumRanges(backed), reserved: sumPages()};
        const columns = readColumns('columns', 6);
        return {requested: {low: columns[0], high: columns[1]}, held: {low: columns[2], high: columns[3]},
                reserved: {low: columns[4], high: columns[5]}};
    }

    /* What was free at the last look before a moment, or null. */
    function freeAt(moment) {
        const i = countBefore(freeMoment, one => one <= moment) - 1;
        return i < 0 ? null : {split: freeSplit[i], largest: freeLargest[i]};
    }

    /* ---- times --------------------------------------------------------------------------- */

    /* A value of `to` beside one of `from`, on a straight line between two points. */
    function between(from, to, value) {
        const last = Math.max(countBefore(from, one => one <= value) - 1, 0); /* not larger */
        const i = Math.min(last, from.length - 2);
        if (i < 0)
            return to.length ? to[0] : 0;
        const share = from[i + 1] > from[i] ? (value - from[i]) / (from[i + 1] - from[i]) : 1;
        return to[i] + Math.min(Math.max(share, 0), 1) * (to[i + 1] - to[i]);
    }

    const hasTimes = timeNs.length > 1 && timeNs[timeNs.length - 1] > timeNs[0];
    const timeOf = moment => between(timeMoment, timeNs, moment);
    const momentOf = ns => between(timeNs, timeMoment, ns);

    /* ---- moments as the page shows them -------------------------------------------------- */

    /* Times of a plan are numbers of its file, which may be too large for a double. Those after the
       first one are exact below 2^51. */
    const FIRST = WORD === 'time' && BigInt(data.first);
    const timeShown = time => String(FIRST + BigInt(Math.round(time)));
    const shown = moment => WORD === 'time' ? timeShown(timeOf(moment)) : String(moment);

    /* The moment of an event, or the last one whose time is not after a time; -1 before all times. */
    function momentShown(text) {
        if (WORD !== 'time')
            return Math.round(text) || 0;
        const time = /^\d+$/.test(text) ? Number(BigInt(text) - FIRST) : Number(text) - Number(FIRST);
        const near = Math.round(momentOf(time));
        return Math.round(timeOf(near)) > time ? near - 1 : near;
    }

    /* The first and the last event, or time, at which a range lives. */
    function livesText(i) {
        const last = end[i] === Infinity ? 'the end' : WORD === 'time' ? BigInt(shown(end[i])) - 1n : end[i] - 1;
        return `from ${WORD} ${shown(begin[i])} to ${last}`;
    }

    /* What a range lives, in events or time. */
    const lifeOf = i => WORD === 'time' ? Math.round(timeOf(end[i])) - Math.round(timeOf(begin[i]))
                                        : Math.min(end[i], LAST + 1) - begin[i];

    if (!isNamed)
        nameBySize();
    const byName = rankGroups(groupByName());
    const isBySize = byName.share < 0.5 || byName.parts.length === 1; /* names hardly repeat, or all are one */
    const {parts, rank} = isBySize ? rankGroups(groupBySize()) : byName;
    return {LAST, PEAK, EVERY, COUNT, isNamed, isBySize, omitted: Number(data.omitted), names, nameOf, parts, rank,
            memories, pageNumber, pageDedicated, pageElastic, pageMemory, stretchPage, stretchBegin, stretchEnd,
            stretchHasMemory, begin, end, page, offset, size, backed, requested, name, refusedMoment, refusedSize,
            refusedName, frames, hasTimes, timeOf, momentOf, livesAt, stateAt, hasFree: freeMoment.length > 0, freeAt,
            sums: readSums(), swatches, bytesText, timeText, count,
            WORD, PLACE, shown, timeShown, momentShown, livesText, lifeOf};
})();
