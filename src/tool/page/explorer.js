/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * explorer.js - shows the memory at any moment: the pages with their ranges, and the names by what
 * they hold. A course of one moment has no chart, and nothing that chooses moments.
 */
'use strict';
(() => {
    const {LAST, PEAK, COUNT, names, nameOf, memories, pageNumber, pageDedicated, pageElastic, pageMemory,
           stretchPage, stretchBegin, stretchEnd, stretchHasMemory, begin, end, page, offset, size, backed, requested,
           name, refusedMoment, refusedSize, refusedName, livesAt, swatches, bytesText, count, WORD, PLACE, shown,
           momentShown} = course;

    /* ---- the map ------------------------------------------------------------------------- */

    const map = find('map');
    const ROW = 30, BAR = 20, LEFT = 96, RIGHT = 150;
    const MEMORY = 160, LEAST_WIDTH = 640; /* pixels of a memory's name; of a map that has room for it */
    const MOST_PAGES = 500; /* a canvas has at most 32767 pixels */
    let state, selected = -1, wanted = '';
    let wantedBegin = -1; /* the moment that `wanted` means */
    let room = 0; /* pixels of the widest page, as last drawn */
    let left = LEFT; /* pixels beside the pages */

    /* "#12" means the ranges that event 12 allocates, or that begin at time 12; other text is a part of a name. */
    const isName = text => !wanted || text.toLowerCase().includes(wanted);
    const isWanted = i => LAST && wanted[0] === '#' ? begin[i] === wantedBegin : isName(nameOf(name[i]));

    /* The pixels of a page: those of the largest one, or as wide as its share of it. */
    function widthOf(place) {
        return find('same-width').checked ? room : Math.max(place.extent / state.extent * room, 2);
    }

    /* A range is pale if it is not searched for, and half as strong if parts of it lack memory. */
    function drawRange(c, place, i, top, width) {
        const x = left + offset[i] / place.extent * width;
        const wide = Math.max(size[i] / place.extent * width, 1);
        c.globalAlpha = (isWanted(i) ? 1 : 0.15) * (backed[i] < size[i] ? 0.5 : 1);
        c.fillStyle = swatches[course.rank[i]];
        c.fillRect(x, top, wide > 2 ? wide - 0.5 : wide, BAR);
        c.globalAlpha = 1;
        if (i === selected) {
            c.strokeStyle = c.textColor;
            c.lineWidth = 2;
            c.strokeRect(x, top, wide, BAR);
        }
    }

    /* The bytes of a page that have memory. An elastic page lacks some. */
    function drawMemory(c, place, top, width) {
        c.fillStyle = c.freeColor;
        if (!pageElastic[place.index]) {
            c.fillRect(left, top, width, BAR);
            return;
        }
        for (let i = 0; i < state.stretches; i++) {
            const x = left + stretchBegin[i] / place.extent * width;
            const wide = (stretchEnd[i] - stretchBegin[i]) / place.extent * width;
            if (stretchPage[i] !== place.index)
                continue;
            if (stretchHasMemory[i])
                c.fillRect(x, top, wide, BAR);
            else
                c.clearRect(x, top, wide, BAR);
        }
        c.strokeStyle = c.freeColor;
        c.lineWidth = 1;
        c.strokeRect(left + 0.5, top + 0.5, width - 1, BAR - 1);
    }

    /* The name of the page's memory, if there are several and it has room; a long one is cut. */
    function drawMemoryName(c, place, top) {
        let text = left > LEFT ? memories[pageMemory[place.index]] : '';
        const isWhole = c.measureText(text).width <= MEMORY;
        while (!isWhole && c.measureText(`${text}\u2026`).width > MEMORY)
            text = text.slice(0, -1);
        c.fillText(isWhole ? text : `${text}\u2026`, 0, top + BAR - 5);
    }

    function drawPage(c, place, row) {
        const top = row * ROW, width = widthOf(place), index = place.index;
        const kind = pageDedicated[index] ? ' alone' : pageElastic[index] ? ' elastic' : '';
        c.fillStyle = c.textColor;
        c.textAlign = 'right';
        c.fillText(`${PLACE} ${pageNumber[index]}${kind}`, left - 8, top + BAR - 5);
        c.textAlign = 'left';
        drawMemoryName(c, place, top);
        c.fillText(`${bytesText(place.bytes)}, ${Math.floor(100 * place.held / place.bytes)} % held`,
                   left + width + 8, top + BAR - 5);
        drawMemory(c, place, top, width);
        let drawn = -1; /* of ranges that are narrower than a pixel, one for each pixel is drawn */
        for (const i of place.ranges) {
            const pixel = Math.floor((offset[i] + size[i]) / place.extent * width);
            if (pixel > drawn || i === selected)
                drawRange(c, place, i, top, width);
            drawn = Math.max(drawn, pixel);
        }
    }

    const when = () => `${WORD === 'time' ? 'at time' : 'after event'} ${shown(state.moment)}`;

    function drawMap() {
        const scale = window.devicePixelRatio || 1, width = map.clientWidth;
        left = LEFT + (memories.length && width >= LEAST_WIDTH ? MEMORY : 0);
        room = Math.max(width - left - RIGHT, 50);
        const pages = state.pages.slice(0, MOST_PAGES);
        const height = Math.max(pages.length, 1) * ROW;
        map.style.height = `${height}px`;
        map.width = width * scale;
        map.height = height * scale;
        const c = map.getContext('2d');
        const dark = matchMedia('(prefers-color-scheme:dark)').matches;
        c.textColor = dark ? '#ddd' : '#222';
        c.freeColor = dark ? '#2c2e33' : '#e4e4e8';
        c.scale(scale, scale);
        c.font = '12px sans-serif';
        pages.forEach((place, row) => drawPage(c, place, row));
        map.setAttribute('aria-label', `${count(state.pages.length, PLACE)} with ` +
                         `${count(state.live, 'range')}${LAST ? ` ${when()}` : ''}`);
    }

    /* ---- ranges of the map --------------------------------------------------------------- */

    function rangeAt(x, y) {
        const place = state.pages[Math.floor(y / ROW)];
        if (!place || y % ROW > BAR)
            return -1;
        const at = (x - left) / widthOf(place) * place.extent;
        const hit = place.ranges.find(i => offset[i] <= at && at < offset[i] + size[i]);
        return hit === undefined ? -1 : hit;
    }

    function describe(i) {
        const memory = memories.length ? `memory ${memories[pageMemory[page[i]]]}, ` : '';
        const bytes = backed[i] < size[i] ? `${bytesText(backed[i])} of ${bytesText(size[i])} have memory`
                                          : `${bytesText(requested[i])} requested, ${bytesText(size[i])} held`;
        return `${nameOf(name[i])}: ${bytes}, ${memory}` +
            `${PLACE} ${pageNumber[page[i]]}, offset ${offset[i]}` + (LAST ? `, lives ${course.livesText(i)}` : '');
    }

    function select(i) {
        if (i === selected)
            return;
        selected = i;
        find('pointed').textContent = i < 0 ? '' : describe(i);
        drawMap();
    }

    /* Moves the selection to another range: along a page, or to the next page. */
    function moveSelection(key) {
        const row = state.pages.findIndex(place => place.ranges.includes(selected));
        const ranges = row < 0 ? [] : state.pages[row].ranges;
        const at = ranges.indexOf(selected) + (key === 'ArrowRight') - (key === 'ArrowLeft');
        if (key === 'ArrowLeft' || key === 'ArrowRight') {
            const first = state.pages.find(place => place.ranges.length);
            return row < 0 ? (first ? first.ranges[0] : -1) : ranges[at] ?? selected;
        }
        const step = key === 'ArrowDown' ? 1 : -1;
        for (let other = row + step; state.pages[other]; other += step)
            if (state.pages[other].ranges.length)
                return state.pages[other].ranges[0];
        return selected;
    }

    /* ---- tables of names ----------------------------------------------------------------- */

    const MOST_ROWS = 20;

    function addRow(body, cells, onName) {
        const row = body.insertRow();
        cells.forEach((text, column) => {
            const cell = row.insertCell();
            if (column || !onName) {
                cell.textContent = text;
                return;
            }
            const button = document.createElement('button');
            button.type = 'button';
            button.textContent = text;
            button.addEventListener('click', onName);
            cell.append(button);
        });
    }

    function searchFor(text) {
        find('find').value = text;
        wanted = text.toLowerCase();
        const number = wanted.slice(1), moment = wanted[0] === '#' ? momentShown(number) : -1;
        wantedBegin = moment >= 0 && shown(moment) === number ? moment : -1;
        show();
        showAll();
    }

    function showNow() {
        const sums = new Map();
        for (const place of state.pages)
            for (const i of place.ranges)
                if (isWanted(i)) {
                    const sum = sums.get(name[i]) || {bytes: 0, ranges: 0};
                    sum.bytes += backed[i];
                    sum.ranges++;
                    sums.set(name[i], sum);
                }
        const sorted = [...sums].sort((a, b) => b[1].bytes - a[1].bytes);
        const body = find('now').tBodies[0];
        body.replaceChildren();
        const share = bytes => `${(100 * bytes / (state.held || 1)).toFixed(1)} %`;
        for (const [index, sum] of sorted.slice(0, MOST_ROWS))
            addRow(body, [nameOf(index), bytesText(sum.bytes), share(sum.bytes), sum.ranges],
                   () => searchFor(nameOf(index)));
        const rest = sorted.slice(MOST_ROWS).map(([, sum]) => sum);
        const bytes = rest.reduce((sum, one) => sum + one.bytes, 0);
        if (rest.length)
            addRow(body, [count(rest.length, 'more name'), bytesText(bytes), share(bytes),
                          rest.reduce((sum, one) => sum + one.ranges, 0)]);
    }

    const COLUMNS = [
        {title: 'name', key: 'text'},
        {title: 'allocations', key: 'ranges'},
        {title: 'largest', key: 'largest', format: bytesText},
        {title: 'held at the peak', key: 'peak', format: bytesText},
        {title: 'held at the end', key: 'end', format: bytesText},
        {title: `longest life, ${WORD}s`, key: 'life'},
    ].filter(({key}) => WORD !== 'time' || key !== 'end'); /* a plan holds nothing at the end of its times */
    let sortedBy = 'peak';

    /* What each name did over the whole run. */
    const totals = names.map(text => ({text: text || '(unnamed)', ranges: 0, largest: 0, peak: 0, end: 0, life: 0}));
    for (let i = 0; i < COUNT; i++) {
        const sum = totals[name[i]];
        sum.ranges++;
        sum.largest = Math.max(sum.largest, backed[i]);
        sum.peak += livesAt(i, PEAK) ? backed[i] : 0;
        sum.end += end[i] === Infinity ? backed[i] : 0;
        sum.life = Math.max(sum.life, course.lifeOf(i));
    }

    function showAll() {
        const head = find('all').tHead, body = find('all').tBodies[0];
        head.replaceChildren();
        const row = head.insertRow();
        for (const column of COLUMNS) {
            const cell = document.createElement('th'), button = document.createElement('button');
            button.type = 'button';
            button.textContent = column.title;
            button.addEventListener('click', () => {
                sortedBy = column.key;
                showAll();
            });
            cell.append(button);
            if (column.key === sortedBy)
                cell.setAttribute('aria-sort', sortedBy === 'text' ? 'ascending' : 'descending');
            row.append(cell);
        }
        const order = sortedBy === 'text' ? (a, b) => (a.text > b.text) - (a.text < b.text)
                                          : (a, b) => b[sortedBy] - a[sortedBy];
        const only = wanted[0] === '#' && new Set(name.filter((_, i) => begin[i] === wantedBegin));
        const found = totals.filter((sum, i) => sum.ranges && (only ? only.has(i) : isName(sum.text)));
        body.replaceChildren();
        for (const sum of found.sort(order).slice(0, MOST_ROWS))
            addRow(body, COLUMNS.map(({key, format}) => format ? format(sum[key]) : sum[key]),
                   () => searchFor(sum.text));
        if (found.length > MOST_ROWS)
            addRow(body, [count(found.length - MOST_ROWS, 'more name')]);
    }

    function showRefused() {
        const body = find('refused').querySelector('tbody');
        for (let i = 0; i < Math.min(refusedMoment.length, MOST_ROWS); i++)
            addRow(body, [nameOf(refusedName[i]), refusedMoment[i], bytesText(refusedSize[i])],
                   () => showMoment(refusedMoment[i]));
        if (refusedMoment.length > MOST_ROWS)
            addRow(body, [`${refusedMoment.length - MOST_ROWS} more`]);
        find('refused').hidden = !refusedMoment.length;
    }

    function showLegend() {
        const shown = course.parts.slice(0, swatches.length - 1);
        for (const part of course.parts.length > shown.length ? [...shown, 'others'] : shown) {
            const item = document.createElement('li'), image = document.createElement('canvas');
            image.width = image.height = 12;
            const c = image.getContext('2d'), rank = shown.indexOf(part);
            c.fillStyle = swatches[rank < 0 ? swatches.length - 1 : rank];
            c.fillRect(0, 0, 12, 12);
            item.append(image, part);
            find('legend').append(item);
        }
    }

    /* ---- the page ------------------------------------------------------------------------ */

    /* Shows the state again, after a change of what is searched for. */
    function show() {
        const moment = WORD === 'time' ? `At time ${shown(state.moment)}: `
                                       : `After event ${state.moment} of ${LAST}: `;
        find('sums').textContent = (LAST ? moment : '') +
            `${bytesText(state.held)} held in ${count(state.live, 'range')}, ` +
            `${bytesText(state.reserved)} reserved in ${count(state.pages.length, PLACE)}` +
            `${state.pages.length > MOST_PAGES ? `, of which the first ${MOST_PAGES} are drawn.` : '.'}`;
        drawMap();
        showNow();
    }

    function showMoment(moment) {
        const whole = Math.min(Math.max(Math.round(moment) || 0, 0), LAST);
        state = course.stateAt(whole);
        if (selected >= 0 && !livesAt(selected, whole))
            selected = -1;
        find('slider').value = whole;
        find('moment').value = shown(whole);
        find('slider').setAttribute('aria-valuetext', when());
        chart.choose(whole);
        show();
    }

    const chart = LAST ? makeChart(find('course'), showMoment) : {draw() {}, choose() {}};

    function redraw() {
        chart.draw();
        drawMap();
    }

    function listen() {
        find('slider').addEventListener('input', event => showMoment(Number(event.target.value)));
        find('moment').addEventListener('change', event => showMoment(momentShown(event.target.value)));
        find('to-peak').addEventListener('click', () => showMoment(PEAK));
        find('to-end').addEventListener('click', () => showMoment(LAST));
        find('same-width').addEventListener('change', drawMap);
        find('find').addEventListener('input', event => searchFor(event.target.value));
        map.addEventListener('pointermove', event => select(rangeAt(event.offsetX, event.offsetY)));
        map.addEventListener('keydown', event => {
            if (!event.key.startsWith('Arrow'))
                return;
            event.preventDefault();
            select(moveSelection(event.key));
        });
        window.addEventListener('resize', redraw);
        window.addEventListener('beforeprint', redraw);
        matchMedia('(prefers-color-scheme:dark)').addEventListener('change', redraw);
    }

    if (!LAST) {
        document.querySelectorAll('.moments').forEach(element => element.hidden = true);
        find('find').placeholder = 'part of a name';
        find('sums').after(find('legend'), find('unnamed'));
    }
    find('explorer').hidden = false;
    find('strip-help').hidden = !course.hasFree;
    find('frames-help').hidden = !course.frames.length;
    find('refused-help').hidden = !refusedMoment.length;
    find('slider').max = LAST;
    find('moment').max = shown(LAST);
    if (!course.isNamed && COUNT)
        find('unnamed').textContent = `${LAST ? 'The file has no names' : 'No range has a name'}: ` +
            'each requested size has the place of one.';
    if (course.isBySize)
        find('unnamed').textContent += ' Names do not tell ranges apart, so colours stand for sizes.';
    if (course.omitted)
        find('left-out').textContent = `${count(course.omitted, 'range')} that hold few bytes` +
            `${LAST ? ` or live for few ${WORD}s` : ''} are left out of ${PLACE}s and names.`;
    showLegend();
    showRefused();
    showAll();
    listen();
    showMoment(PEAK);
})();
