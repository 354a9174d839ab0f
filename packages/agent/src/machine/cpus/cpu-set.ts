/** Reads a list of CPUs such as `0-2,7`; empty text is no CPU. @throws RangeError when it is none */
export function parseCpuSet(text: string): Set<number> {
  const cpus = new Set<number>();
  for (const part of text.trim().split(',').filter(Boolean)) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part.trim()) ?? [];
    if (first === undefined || Number(last) < Number(first))
      throw new RangeError(`${JSON.stringify(text)} is no list of CPUs`);
    for (let cpu = Number(first); cpu <= Number(last); cpu += 1) cpus.add(cpu);
  }
  return cpus;
}

/** Writes CPUs as such a list, in order and with ranges. */
export function formatCpuSet(cpus: Iterable<number>): string {
  const ranges: [first: number, last: number][] = [];
  for (const cpu of [...new Set(cpus)].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && cpu === range[1] + 1) range[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}
