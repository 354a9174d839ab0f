import type { ServerResponse } from 'node:http';
import type { UsageSeries, UsageState } from '../../machine/stats/usage-history.ts';
import { containerPath } from './container-info.ts';

const codes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => codes[sign] ?? sign);

/** Average number of used CPUs over all samples; undefined with fewer than two samples. */
function coresOf({ samples }: UsageSeries): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.timeMs <= first.timeMs) return undefined;
  return (last.cpuNanoSeconds - first.cpuNanoSeconds) / 1e6 / (last.timeMs - first.timeMs);
}

function row(series: UsageSeries): string {
  const { of, samples } = series;
  const id = of === undefined ? '/' : containerPath(of);
  const sample = samples.at(-1);
  const cells = [
    `<a href="/containers${escaped(id.split('/').map(encodeURIComponent).join('/'))}">${escaped(id)}</a>`,
    escaped(of === undefined ? 'the machine' : `${of.namespace}/${of.pod}/${of.container}`),
    coresOf(series)?.toFixed(3) ?? '',
    ((sample?.cpuNanoSeconds ?? 0) / 1e9).toFixed(1),
    ((sample?.memoryWorkingSetBytes ?? 0) / 2 ** 20).toFixed(1),
  ];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

/** Sends an HTML table of the containers below a name. */
export function containersPage(response: ServerResponse, name: string, { machine, containers }: UsageState): void {
  const prefix = name === '/' ? '/' : `${name}/`;
  const shown = containers.filter(({ of }) => of !== undefined && `${containerPath(of)}/`.startsWith(prefix));
  const rows = [...(name === '/' ? [machine] : []), ...shown].map(row).join('\n');
  const title = `Containers of ${escaped(name)}`;
  const heads = ['name', 'container', 'CPUs', 'CPU seconds', 'memory (MiB)'].map((head) => `<th>${head}</th>`).join('');
  const html = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>
<body><h1>${title}</h1>
<table><tr>${heads}</tr>
${rows}
</table>
<p><a href="/api/v1.3/containers${escaped(name)}">JSON</a> <a href="/api/v1.3/machine">machine</a> <a href="/metrics">metrics</a></p>
</body></html>
`;
  const body = Buffer.from(html);
  response.writeHead(200, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
    'Content-Security-Policy': "default-src 'none'",
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(body);
}
