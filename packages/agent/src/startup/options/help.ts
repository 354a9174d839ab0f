import { flagsHelp } from '@keelson/core/internal';
import { featureGates, gateText } from './feature-gates.ts';
import { optionSections } from './option-table.ts';

/** The whole text of `--help`. */
export function helpText(): string {
  const sections = optionSections.map(({ title, options }) => `${title}:\n${flagsHelp(options)}`);
  const gates = featureGates.map((gate) => `  ${gateText(gate)}\n`).join('');
  return `Runs the pods of this node: pods from manifest files and URLs, and pods that are assigned by the API server.

Usage: keelson-agent [options]

Values are written as --name=value or --name value; a switch (bool) accepts a value only as --name=value.

${sections.join('\n')}
Feature gates:
${gates}`;
}
