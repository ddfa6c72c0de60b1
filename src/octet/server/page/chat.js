const $ = (id) => document.getElementById(id);
const kStored = ['model', 'system', 'temperature', 'max-tokens'];
const turns = [];       // {role, content}, as they are sent
let running = null;     // the AbortController of the answer under way
let models = [];

function store(area, key, value) {
  try {
    if (value === undefined) return area().getItem(`octet.${key}`) ?? '';
    if (value) area().setItem(`octet.${key}`, value);
    else area().removeItem(`octet.${key}`);
  } catch { /* a browser may refuse storage; the page works without */ }
  return '';
}
const local = () => localStorage;
const session = () => sessionStorage;

function headers() {
  const key = $('api-key').value.trim();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function problemOf(response) {
  let message = '';
  try { message = (await response.json()).error.message; } catch { /* not the server's own error */ }
  return message || `the server answered ${response.status} ${response.statusText}`;
}

async function loadModels() {
  $('settings-problem').textContent = '';
  let problem = '';
  try {
    const response = await fetch('v1/models', { headers: headers() });
    if (response.ok) models = (await response.json()).data.map((card) => card.id);
    else problem = await problemOf(response);
    if (response.status === 401) openSettings($('api-key'));
    if (response.status === 503) setTimeout(loadModels, 2000);
  } catch {
    problem = 'the server cannot be reached';
  }
  const chosen = $('model').value || store(local, 'model');
  $('model').replaceChildren(...models.map((name) => new Option(name, name, false, name === chosen)));
  $('model-name').textContent = problem || $('model').value;
  $('settings-problem').textContent = problem;
}

function openSettings(focus) {
  if (!$('settings').open) $('settings').showModal();
  if (focus) focus.focus();
}

function closeSettings() {
  for (const id of kStored) store(local, id, $(id).value);
  store(session, 'api-key', $('api-key').value.trim());
  loadModels();
  $('prompt').focus();
}

function atEnd() {
  const log = $('log');
  return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}
function toEnd() { $('log').scrollTop = $('log').scrollHeight; }

function addArticle(role, label) {
  $('welcome').hidden = true;
  const article = document.createElement('article');
  article.className = role;
  article.setAttribute('aria-label', label);
  const text = document.createElement('div');
  text.className = 'text';
  article.append(text);
  $('log').append(article);
  return { article, text };
}

function addProblem(article, message) {
  const node = document.createElement('p');
  node.className = 'problem';
  node.setAttribute('role', 'alert');
  node.textContent = message;
  article.append(node);
}

function requestBody() {
  const messages = $('system').value.trim() ? [{ role: 'system', content: $('system').value }] : [];
  const body = { messages: messages.concat(turns), stream: true, stream_options: { include_usage: true } };
  if ($('model').value) body.model = $('model').value;
  if ($('temperature').value !== '') body.temperature = Number($('temperature').value);
  if ($('max-tokens').value !== '') body.max_tokens = Number($('max-tokens').value);
  return JSON.stringify(body);
}

// The data of each server-sent event.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    const parts = buffer.split(/\r?\n\r?\n/);
    buffer = parts.pop();
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
      if (data.length) yield data.join('\n');
    }
  }
}

// One answer while it comes: text, times, counts.
class AnswerView {
  constructor() {
    Object.assign(this, addArticle('assistant', 'Answer'));
    this.article.classList.add('waiting');
    this.content = '';
    this.sent = performance.now();
    this.first = this.last = this.tokens = 0;
    this.reason = '';
    this.drawing = false;
  }
  take(chunk) {
    if (chunk.error) throw new Error(chunk.error.message);
    if (chunk.usage) this.tokens = chunk.usage.completion_tokens;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    if (choice.finish_reason) this.reason = choice.finish_reason;
    const piece = choice.delta?.content;
    if (!piece) return;
    this.last = performance.now();
    if (!this.first) this.first = this.last;
    ++this.tokens;
    this.content += piece;
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => this.draw());
  }
  draw() {
    this.drawing = false;
    const follow = atEnd();
    renderMarkdown(this.content, this.text);
    if (follow) toEnd();
  }
  end(problem) {
    this.draw();
    this.article.classList.remove('waiting');
    const parts = [];
    if (this.first) parts.push(`TTFT ${((this.first - this.sent) / 1000).toFixed(2)} s`);
    if (this.tokens > 1 && this.last > this.first) {
      parts.push(`${((this.tokens - 1) * 1000 / (this.last - this.first)).toFixed(1)} tokens/s`);
    }
    if (this.tokens) parts.push(`${this.tokens} tokens`);
    if (this.reason === 'length') parts.push('cut at the token limit');
    if (this.reason === 'stopped') parts.push('stopped');
    if (parts.length) {
      const stats = document.createElement('p');
      stats.className = 'stats';
      stats.textContent = parts.join(' · ');
      this.article.append(stats);
    }
    if (problem) addProblem(this.article, problem);
    toEnd();
  }
}

function setRunning(controller) {
  running = controller;
  $('send').hidden = controller !== null;
  $('stop').hidden = controller === null;
  $('log').setAttribute('aria-busy', String(controller !== null));
}

async function receive(view, controller) {
  const response = await fetch('v1/chat/completions', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers() },
    body: requestBody(),
    signal: controller.signal,
  });
  if (!response.ok) {
    const problem = await problemOf(response);
    if (response.status === 401) openSettings($('api-key'));
    throw new Error(problem);
  }
  for await (const data of events(response)) {
    if (data === '[DONE]') return;
    view.take(JSON.parse(data));
  }
  throw new Error('the connection ended before the answer did');
}

async function ask(text) {
  addArticle('user', 'You').text.textContent = text;
  turns.push({ role: 'user', content: text });
  const view = new AnswerView();
  toEnd();
  const controller = new AbortController();
  setRunning(controller);
  let problem = '';
  try {
    await receive(view, controller);
  } catch (error) {
    if (controller.signal.aborted) view.reason = 'stopped';
    else problem = error.message || String(error);
  }
  if (controller.dropped) return;
  if (view.content) turns.push({ role: 'assistant', content: view.content });
  else turns.pop();  // what got no answer is not part of the conversation
  view.end(problem);
  setRunning(null);
  $('prompt').focus();
}

function stop() { running?.abort(); }

function newChat() {
  if (running) running.dropped = true;
  stop();
  setRunning(null);
  turns.length = 0;
  for (const article of $('log').querySelectorAll('article')) article.remove();
  $('welcome').hidden = false;
  $('prompt').focus();
}

function fitPrompt() {
  $('prompt').style.height = 'auto';
  $('prompt').style.height = `${$('prompt').scrollHeight + 2}px`;
}

$('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = $('prompt').value;
  if (running || !text.trim()) return;
  $('prompt').value = '';
  fitPrompt();
  ask(text);
});
$('prompt').addEventListener('input', fitPrompt);
$('prompt').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $('composer').requestSubmit();
});
$('stop').addEventListener('click', stop);
$('new-chat').addEventListener('click', newChat);
$('open-settings').addEventListener('click', () => openSettings());
$('settings').addEventListener('close', closeSettings);
$('api-key').addEventListener('change', () => { store(session, 'api-key', $('api-key').value.trim()); loadModels(); });
$('model').addEventListener('change', () => { $('model-name').textContent = $('model').value; });
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && running && !$('settings').open) stop();
  if (event.altKey && event.code === 'KeyN') { event.preventDefault(); newChat(); }
  if (event.altKey && event.code === 'KeyS') { event.preventDefault(); openSettings(); }
});

for (const id of kStored) if (id !== 'model') $(id).value = store(local, id);
$('api-key').value = store(session, 'api-key');
loadModels();
