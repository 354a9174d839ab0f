import { Plot, short } from './plot.ts';
import type { BenchReport, BenchResult } from './run-bench.ts';

/** Colours that differ for colour-blind eyes and on a grey print (Okabe and Ito). */
const palette = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7a7a7a', '#000000'];
const width = 860;
const left = 240;
const right = 150;
const rowHeight = 24;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** A chart with one bar per server. A thin line shows the range from the least to the greatest value. */
function bars(rows: readonly BarRow[], subjects: readonly string[]): string {
  const longest = Math.max(...rows.map(({ value, most }) => Math.max(value, most ?? 0)), Number.MIN_VALUE);
  const x = (value: number) => left + (value / longest) * (width - left - right);
  const plot = new Plot(width, rows.length * rowHeight + 8);
  for (const [index, { name, value, least, most, words }] of rows.entries()) {
    const y = index * rowHeight + 4;
    plot.text(left - 8, y + 15, name.length > 36 ? `${name.slice(0, 35)}…` : name, { anchor: 'end' });
    plot.bar(
      left,
      y + 3,
      x(value) - left,
      rowHeight - 8,
      palette[subjects.indexOf(name) % palette.length] ?? '#000000',
    );
    if (least !== undefined && most !== undefined)
      plot.line(x(least), y + 11, x(most), y + 11, { colour: '#222222', width: 2 });
    plot.text(Math.max(x(value), x(most ?? 0)) + 6, y + 15, words);
  }
  return plot.toString();
}

interface BarRow {
  readonly name: string;
  readonly value: number;
  readonly least?: number;
  readonly most?: number;
  readonly words: string;
}

function section(results: readonly BenchResult[], subjects: readonly string[]): string {
  const [first] = results;
  const measured = results.filter(({ perSecond }) => perSecond.median > 0);
  const rates = measured.map(({ subject: name, perSecond: { median: value, least, most } }) => ({
    ...{ name, value, least, most, words: `${short(value)}/s` },
  }));
  const latencies = measured.map(({ subject: name, p50Ms, p99Ms }) => ({
    ...{ name, value: p50Ms, least: p50Ms, most: p99Ms, words: `${short(p50Ms)} ms, p99 ${short(p99Ms)} ms` },
  }));
  const failed = results.flatMap(({ subject, failed: why }) =>
    why === undefined ? [] : [`<p class="failed">${escaped(subject)}: ${escaped(why)}</p>`],
  );
  const plots = `<h3>per second</h3>${bars(rates, subjects)}<h3>latency: median, line to the 99th percentile</h3>${bars(latencies, subjects)}`;
  return `<section><h2>${escaped(first?.scenario ?? '')}</h2><p>${escaped(first?.what ?? '')}</p>${measured.length === 0 ? '' : plots}${failed.join('')}</section>`;
}

/** The report as one page that loads nothing from elsewhere. */
export function htmlReport(report: BenchReport): string {
  const { subjects, results, plan } = report;
  const names = [...new Set(results.map(({ scenario }) => scenario))];
  const cell = ({ scenario, subject, perSecond, p50Ms, p99Ms, cpuMicros, failed }: BenchResult) =>
    `<tr><td>${escaped(scenario)}</td><td>${escaped(subject)}</td><td>${short(perSecond.median)}</td><td>${short(p50Ms)}</td><td>${short(p99Ms)}</td><td>${cpuMicros === undefined ? '' : short(cpuMicros)}</td><td>${escaped(failed ?? '')}</td></tr>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>keelson bench</title>
<style>
body { font: 15px sans-serif; color: #222; max-width: ${width}px; margin: 2em auto; padding: 0 1em }
svg { max-width: 100%; height: auto }
table { border-collapse: collapse } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: left }
h2 { margin: 2em 0 0 } h3 { font-size: 13px; margin: 1em 0 .2em; color: #555 } .failed { color: #b00020 }
</style>
</head>
<body>
<h1>keelson bench</h1>
<p>${escaped(report.date)}, Node ${escaped(report.node)}, ${escaped(report.machine)}. ${escaped(plan.object)};
${plan.objects} objects, ${plan.clients} clients, ${plan.watchers} watchers,
${plan.rounds} rounds of ${plan.roundMs} ms.
The load generator runs on the same machine.</p>
${names
  .map((name) =>
    section(
      results.filter(({ scenario }) => scenario === name),
      subjects,
    ),
  )
  .join('\n')}
<h2>figures</h2>
<table><tr><th>scenario</th><th>server</th><th>per second</th><th>p50 ms</th><th>p99 ms</th><th>server CPU µs</th><th></th></tr>
${results.map(cell).join('\n')}
</table>
</body>
</html>
`;
}
