import { readFile } from 'node:fs/promises';
import type { Circumstances, Figures } from './whole-report.ts';

/** Figures of a `report.json`. */
export async function readFigures(path: string): Promise<Figures> {
  // JSON has no NaN, which stands for figures that do not exist.
  const revive = (_: string, value: unknown) => (value === null ? Number.NaN : value);
  const { rows, stores, ...circumstances } = JSON.parse(await readFile(path, 'utf8'), revive) as Circumstances &
    Figures;
  return { rows, stores, circumstances };
}

interface Named {
  readonly scenario: string;
  readonly adapter: string;
  readonly ratio: number;
  readonly verdict: string;
}

function replaced<T extends Named>(before: readonly T[], now: readonly T[]): readonly T[] {
  const same = (a: Named) => (b: Named) => a.scenario === b.scenario && a.adapter === b.adapter;
  const added = now.filter((row) => !before.some(same(row)));
  const isFigure = ({ ratio, verdict }: Named) => Number.isFinite(ratio) && verdict !== 'no verdict';
  // An earlier figure is better than none, and than one that was disturbed.
  const better = (row: T) =>
    now.find((other) => same(row)(other) && (isFigure(other) || (Number.isFinite(other.ratio) && !isFigure(row))));
  return [...before.map((row) => better(row) ?? row), ...added];
}

/** The figures of before with those of now in their places. */
export function renewed(before: Figures, now: Figures): Figures {
  return {
    rows: replaced(before.rows, now.rows),
    stores: replaced(before.stores, now.stores),
    circumstances: {
      runs: [...before.circumstances.runs, ...now.circumstances.runs],
      missing: { ...before.circumstances.missing, ...now.circumstances.missing },
    },
  };
}
