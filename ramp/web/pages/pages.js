// What the tables, charts and scenes of the pages need in the browser; Python names these functions.
window.ramp = {
  grouped(text) {
    const [whole, part] = text.split('.');
    return whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') + (part ? '.' + part : '');
  },
  number: (value) => (value == null ? '' : ramp.grouped(String(value))),
  credits: (value) => (value == null ? '' : ramp.grouped((value / 100).toFixed(2))),
  share: (value) => (value == null ? '' : (100 * value).toFixed(value < 0.1 ? 1 : 0) + '\u202f%'),
  // as `Visit.moment` writes times
  time(value) {
    if (value == null) return '';
    const date = new Date(value);
    const two = (number) => String(number).padStart(2, '0');
    const day = date.toLocaleDateString('en', {weekday: 'short'});
    const month = date.toLocaleDateString('en', {month: 'short'});
    const year = date.getFullYear() === new Date().getFullYear() ? '' : ' ' + date.getFullYear();
    return `${day} ${two(date.getDate())} ${month}${year} ${two(date.getHours())}:${two(date.getMinutes())}`;
  },
  // torus2 before torus10
  naturally: (a, b) => String(a ?? '').localeCompare(String(b ?? ''), 'en', {numeric: true}),

  // a colour of pages.css in the browser's scheme, for ECharts
  colour: (name) => getComputedStyle(document.body).getPropertyValue('--ramp-' + name).trim(),

  // ECharts: a rectangle from times and cores, and one in a row that has a name
  bar(params, api) {
    const from = api.coord([api.value(0), api.value(2)]);
    const to = api.coord([api.value(1), api.value(3)]);
    const shape = {x: from[0], y: to[1], width: Math.max(to[0] - from[0], 1), height: Math.max(from[1] - to[1] - 1, 1)};
    return {type: 'rect', shape, style: api.style()};
  },
  barInRow(params, api) {
    const from = api.coord([api.value(0), api.value(2)]);
    const to = api.coord([api.value(1), api.value(2)]);
    const height = 0.7 * api.size([0, 1])[1];
    const shape = {x: from[0], y: from[1] - height / 2, width: Math.max(to[0] - from[0], 2), height};
    return {type: 'rect', shape, style: api.style()};
  },
  // hours from a moment: dates mean nothing in a log
  hoursFrom: (now) => (value) => {
    const hours = Math.round((value - now) / 3600000);
    return hours ? hours + ' h' : 'now';
  },

  // fires an event once the pointer rests for 120 ms with no button pressed, so not while a scene is turned
  resting: (event, name) => {
    const room = event.currentTarget;
    const {target, clientX, clientY, buttons} = event;
    clearTimeout(room.resting);
    if (buttons || target.tagName !== 'CANVAS') return;
    const tell = () => target.dispatchEvent(new MouseEvent(name, {clientX, clientY, bubbles: true}));
    room.resting = setTimeout(tell, 120);
  },

  browser: () => [
    matchMedia('(prefers-color-scheme: dark)').matches,
    Intl.DateTimeFormat().resolvedOptions().timeZone,
    innerWidth,
    !!document.createElement('canvas').getContext('webgl2'),
  ],
};

// a page whose session has ended elsewhere loads again, and so shows the page to sign in
setInterval(() => {
  if (!window.socket || window.socket.connected) return;
  fetch('/', {method: 'HEAD', redirect: 'manual'})
    .then((response) => {
      if (response.type === 'opaqueredirect') location.reload();
    })
    .catch(() => {});
}, 2000);
