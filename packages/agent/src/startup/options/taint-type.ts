import { labelValueErrors, qualifiedNameErrors } from '@keelson/core';
import type { Taint } from '@keelson/kinds';
import { ValueError, type ValueType } from './value-type.ts';

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function parseTaint(item: string): Taint {
  const [, key = '', value = '', effect = ''] = /^([^=:]+)(?:=([^:]*))?:([^:]*)$/.exec(item) ?? [];
  if (key === '') throw new ValueError(`must be key=value:effect, not ${JSON.stringify(item)}`);
  const [problem] = [
    ...qualifiedNameErrors(key).map((why) => `key ${JSON.stringify(key)}: ${why}`),
    ...labelValueErrors(value),
  ];
  if (problem !== undefined) throw new ValueError(`has a bad taint ${JSON.stringify(item)}: ${problem}`);
  if (!effects.includes(effect)) {
    throw new ValueError(`has an unknown effect ${JSON.stringify(effect)}; known: ${effects.join(', ')}`);
  }
  return { key, ...(value === '' ? {} : { value }), effect };
}

/** Taints `key=value:Effect`, separated by commas; each pair of key and effect may occur once. */
export const taintList: ValueType<readonly Taint[]> = {
  name: '[]api.Taint',
  shape: 'list',
  parse(line, earlier = []) {
    const taints = [
      ...earlier,
      ...line
        .split(',')
        .filter((item) => item.trim() !== '')
        .map((item) => parseTaint(item.trim())),
    ];
    const seen = new Set<string>();
    for (const { key, effect } of taints) {
      const identity = `${key}:${effect}`;
      if (seen.has(identity)) throw new ValueError(`names the taint ${identity} twice`);
      seen.add(identity);
    }
    return taints;
  },
  format: (taints) => taints.map(({ key, value = '', effect }) => `${key}=${value}:${effect}`).join(','),
};
