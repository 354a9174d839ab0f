import { featureGates, gateText } from './feature-gates.ts';
import type { AnyOption } from './option.ts';
import { optionSections } from './option-table.ts';

/** Formats a default for the help text and the reference page. */
export function defaultText(row: AnyOption): string {
  return row.shownDefault ?? row.type.format(row.default);
}

/** The text after the description of an option: the notice that it is deprecated, or nothing. */
export function remarkOf(row: AnyOption): string {
  return row.deprecated === undefined ? '' : ` Deprecated: ${row.deprecated}.`;
}

function lines(row: AnyOption): string {
  const shown = defaultText(row);
  const head = `  --${row.name} ${row.type.name}${shown === '' ? '' : ` (default ${shown})`}`;
  return `${head}\n      ${row.help}${remarkOf(row)}\n`;
}

/** The whole text of `--help`. */
export function helpText(): string {
  const sections = optionSections.map(({ title, options }) => `${title}:\n${options.map(lines).join('')}`);
  const gates = featureGates.map((gate) => `  ${gateText(gate)}\n`).join('');
  return `Runs the pods of this node: pods from manifest files and URLs, and pods that are assigned by the API server.

Usage: keelson-agent [options]

Values are written as --name=value or --name value; a switch (bool) accepts a value only as --name=value.

${sections.join('\n')}
Feature gates:
${gates}`;
}
