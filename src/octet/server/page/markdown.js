// Markdown to DOM nodes. Text only ever becomes text nodes: nothing a model says can become markup.

const kInline = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([\s\S]+?)\*\*|__([\s\S]+?)__|\*([^\s*](?:[\s\S]*?[^\s*])??)\*|\[([^\]\n]+)\]\(([^()\s]+)\)|\\([\\`*_{}[\]()#+.!|>~-])/;

function element(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

// Only addresses that open a page or a mail; "javascript:" stays text.
function link(label, address) {
  if (!/^(https?:\/\/|mailto:)/i.test(address)) return document.createTextNode(`[${label}](${address})`);
  const node = element('a', ...inline(label));
  node.href = address;
  node.target = '_blank';
  node.rel = 'noopener noreferrer nofollow';
  return node;
}

function inline(text, depth = 0) {
  const nodes = [];
  while (text) {
    const found = depth < 8 ? kInline.exec(text) : null;
    if (!found) {
      nodes.push(text);
      break;
    }
    if (found.index > 0) nodes.push(text.slice(0, found.index));
    const [whole, ticks, code, strong, strong2, emphasis, label, address, escaped] = found;
    if (ticks) nodes.push(element('code', code.trim() || code));
    else if (strong ?? strong2) nodes.push(element('strong', ...inline(strong ?? strong2, depth + 1)));
    else if (emphasis) nodes.push(element('em', ...inline(emphasis, depth + 1)));
    else if (label) nodes.push(link(label, address));
    else nodes.push(escaped);
    text = text.slice(found.index + whole.length);
  }
  return nodes;
}

function lines(text) {
  const nodes = [];
  for (const line of text.split('\n')) {
    if (nodes.length) nodes.push(element('br'));
    nodes.push(...inline(line));
  }
  return nodes;
}

function codeBlock(language, code) {
  const copy = element('button', 'Copy');
  copy.type = 'button';
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code);
      copy.textContent = 'Copied';
    } catch {
      copy.textContent = 'Not allowed';
    }
    setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
  });
  const node = element('div', element('div', element('span', language || 'text'), copy), element('pre', element('code', code)));
  node.className = 'block';
  node.querySelector('pre').tabIndex = 0;
  return node;
}

function tableRow(line, cell) {
  const cells = line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/);
  return element('tr', ...cells.map((text) => element(cell, ...inline(text.trim()))));
}

const kItem = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;

// The items of a list, and lists inside them by indentation.
function list(rows, depth) {
  const ordered = /\d/.test(kItem.exec(rows[0])[2]);
  const node = document.createElement(ordered ? 'ol' : 'ul');
  if (ordered) node.start = parseInt(kItem.exec(rows[0])[2], 10);
  const base = kItem.exec(rows[0])[1].length;
  for (let i = 0; i < rows.length;) {
    const first = rows[i++].replace(kItem, '');
    const inner = [];
    while (i < rows.length && !(kItem.test(rows[i]) && kItem.exec(rows[i])[1].length <= base + 1)) inner.push(rows[i++]);
    const rest = inner.map((row) => row.replace(/^( {1,4}|\t)/, '')).join('\n');
    node.append(element('li', ...inline(first), ...(rest && depth < 6 ? blocks(rest, depth + 1) : rest ? [rest] : [])));
  }
  return node;
}

function blocks(text, depth = 0) {
  const rows = text.split('\n');
  const nodes = [];
  const starts = (row) => /^\s*(```|~~~)|^#{1,6}\s|^\s*>|^\s*([-*_])(\s*\2){2,}\s*$/.test(row) || kItem.test(row);
  for (let i = 0; i < rows.length;) {
    const row = rows[i];
    const fence = /^\s*(```+|~~~+)\s*([\w+#.-]*)/.exec(row);
    const heading = /^(#{1,6})\s+(.*)$/.exec(row);
    if (!row.trim()) {
      ++i;
    } else if (fence) {
      const code = [];
      for (++i; i < rows.length && !rows[i].trim().startsWith(fence[1]); ++i) code.push(rows[i]);
      ++i;
      nodes.push(codeBlock(fence[2], code.join('\n')));
    } else if (heading) {
      nodes.push(element(`h${Math.min(6, heading[1].length + 2)}`, ...inline(heading[2].replace(/\s#+\s*$/, ''))));
      ++i;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(row)) {
      nodes.push(element('hr'));
      ++i;
    } else if (/^\s*>/.test(row)) {
      const quoted = [];
      while (i < rows.length && /^\s*>/.test(rows[i])) quoted.push(rows[i++].replace(/^\s*> ?/, ''));
      nodes.push(element('blockquote', ...(depth < 6 ? blocks(quoted.join('\n'), depth + 1) : [quoted.join('\n')])));
    } else if (kItem.test(row)) {
      const items = [];
      while (i < rows.length && (kItem.test(rows[i]) || /^(\s{2,}|\t)\S/.test(rows[i]) ||
                                 (!rows[i].trim() && kItem.test(rows[i + 1] ?? '')))) {
        if (rows[i].trim()) items.push(rows[i]);
        ++i;
      }
      nodes.push(list(items, depth));
    } else if (row.includes('|') && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(rows[i + 1] ?? '')) {
      const body = element('tbody');
      const head = element('thead', tableRow(row, 'th'));
      for (i += 2; i < rows.length && rows[i].includes('|'); ++i) body.append(tableRow(rows[i], 'td'));
      nodes.push(element('table', head, body));
    } else {
      const paragraph = [row];
      for (++i; i < rows.length && rows[i].trim() && !starts(rows[i]); ++i) paragraph.push(rows[i]);
      nodes.push(element('p', ...lines(paragraph.join('\n'))));
    }
  }
  return nodes;
}

function renderMarkdown(text, into) { into.replaceChildren(...blocks(text)); }
