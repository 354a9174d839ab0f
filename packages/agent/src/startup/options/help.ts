import { featureGates, gateText } from './feature-gates.ts';
import type { AnyOption } from './option.ts';
import { optionSections } from './option-table.ts';

/** How help and the reference page write a default. */
export function defaultText(row: AnyOption): string {
  return row.shownDefault ?? row.type.format(row.default);
}

/** What follows the meaning: that an option is deprecated. */
export function remarkOf(row: AnyOption): string {
  return row.deprecated === undefined ? '' : ` Deprecated: ${row.deprecated}.`;
}

function lines(row: AnyOption): string {
  const shown = defaultText(row);
  return `  --${row.name} ${row.type.name}${shown === '' ? '' : ` (default ${shown})`}\n      ${row.help}${remarkOf(row)}\n`;
}

/** The whole text of `--help`. */
export function helpText(): string {
  const sections = optionSections.map(({ title, options }) => `${title}:\n${options.map(lines).join('')}`);
  const gates = featureGates.map((gate) => `  ${gateText(gate)}\n`).join('');
  return `Runs the pods of this node: those of manifest files and URLs, and those that the API server gives it.

Usage: keelson-agent [options]

Values follow as --name=value or --name value; a switch (bool) takes its value only as --name=value.

${sections.join('\n')}
Feature gates:
${gates}`;
}
