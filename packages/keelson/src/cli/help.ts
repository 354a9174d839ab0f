import { optionTable } from '../config/options.ts';

const usage = `Keelson, a control plane for Node.

  keelson up     [options]   one process: API server on the embedded store, with its controllers and one node
  keelson serve  [options]   API server with its controllers, on the storage of your choice
  keelson verify [options]   checks every object in the storage while no server uses it; exit code 1 when it finds damage
  keelson version
  keelson help

Options (command line > KEELSON_* > config file > default):
`;

/** Text of `keelson help`, made from the option table. */
export function helpText(): string {
  const rows = optionTable
    .filter((row) => row.flag !== undefined)
    .map(
      (row) =>
        [
          `  ${row.flag}${row.value === undefined ? '' : ` ${row.value}`}`,
          `${row.help}${row.default === '' ? '' : ` (default ${row.default})`}`,
        ] as const,
    );
  const width = Math.max(...rows.map(([left]) => left.length)) + 3;
  return usage + rows.map(([left, right]) => `${left.padEnd(width)}${right}\n`).join('');
}
