import test from 'ava';
import fc from 'fast-check';
import { LinkRewriter } from '../src/connect/rewrite-links.ts';

function rewrite(page: string, prefix = '/p', parts: readonly number[] = []): string {
  const rewriter = new LinkRewriter({ prefix, origin: 'http://10.0.0.1:80' });
  let result = '';
  let at = 0;
  for (const length of parts) {
    result += rewriter.add(page.slice(at, at + length));
    at += length;
  }
  return result + rewriter.add(page.slice(at)) + rewriter.end();
}

for (const [page, expected] of [
  ['<a href="/x">', '<a href="/p/x">'],
  ["<A HREF = '/x' >", "<A HREF = '/p/x' >"],
  ['<a href=/x>', '<a href=/p/x>'],
  ['<a href=/x/>', '<a href=/p/x/>'],
  ['<img src=/a alt=b/><img alt src="/b"/>', '<img src=/p/a alt=b/><img alt src="/p/b"/>'],
  ['<a title="/x" data-href="/x" href="/x" href="x">', '<a title="/x" data-href="/x" href="/p/x" href="x">'],
  ['<a\nhref\t=\n"/x">', '<a\nhref\t=\n"/p/x">'],
  ['<a title=">" href="/x">', '<a title=">" href="/p/x">'],
  ['<a "href="/x">', '<a "href="/x">'],
  ['<a/href="/x">', '<a/href="/p/x">'],
  [
    '<a href="http://10.0.0.1:80/x"><a href="http://10.0.0.1:8080/x">',
    '<a href="/p/x"><a href="http://10.0.0.1:8080/x">',
  ],
  ['<a href="//other/x"><a href="x"><a href="#x"><a href=""><a href>', undefined],
  ['<a href="/p/x"><a href="/p"><a href="/px">', '<a href="/p/x"><a href="/p"><a href="/p/px">'],
  ['<!-- <a href="/x"> --><a href="/x">', '<!-- <a href="/x"> --><a href="/p/x">'],
  ['<!--><a href="/x">', '<!--><a href="/p/x">'],
  ['<!doctype html><?xml?><a href="/x">', '<!doctype html><?xml?><a href="/p/x">'],
  [
    '<script src="/s">"<a href=\'/x\'></scripts>"</SCRIPT ><a href="/x">',
    '<script src="/p/s">"<a href=\'/x\'></scripts>"</SCRIPT ><a href="/p/x">',
  ],
  ['<title><a href="/x"></title><textarea><a href="/x">', undefined],
  ['1 < 2 <3 </ <>< a href="/x">', undefined],
  ['</a href="/x"><a', undefined],
  ['<a href="/x', undefined],
] as const) {
  test(`links of the page ${JSON.stringify(page)}`, (t) => {
    t.is(rewrite(page), expected ?? page);
  });
}

test('a prefix cannot end an attribute', (t) => {
  t.is(rewrite('<a href="/x">', `/a"'<>&\``), '<a href="/a%22%27%3C%3E%26%60/x">');
});

const pieces = fc.constantFrom(
  ...[
    '<',
    '>',
    '!',
    '--',
    '-',
    '?',
    '/',
    '=',
    '"',
    "'",
    ' ',
    '\n',
    'a',
    'href',
    '/x',
    'script',
    '<a href="/x">',
    '<!--',
    '-->',
  ],
  ...['<script>', '</script>', '</title ', '<title>', '&amp;', '\xe9'],
);

test('a page is rewritten in the same way however it is divided, and only paths are added', (t) => {
  const seed = Number(process.env['KEELSON_SEED'] ?? Date.now() % 1e6);
  t.log(`KEELSON_SEED=${seed}`);
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 40 }), fc.array(fc.nat(9), { maxLength: 30 }), (words, parts) => {
      const page = words.join('');
      const whole = rewrite(page);
      if (rewrite(page, '/p', parts) !== whole) return false;
      return whole.replaceAll('/p/', '/') === page;
    }),
    { seed, numRuns: 2_000 },
  );
  t.pass();
});
