import { labelValueErrors, qualifiedNameErrors } from '@keelson/core';
import { didYouMeanOneOf, UsageError, wrongValue } from '@keelson/core/internal';
import type { Taint } from '@keelson/kinds';
import { itemList } from './value-types.ts';

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function parseTaint(text: string, source: string): Taint {
  const item = text.trim();
  const [, key = '', value = '', effect = ''] = /^([^=:]+)(?:=([^:]*))?:([^:]*)$/.exec(item) ?? [];
  if (key === '') throw wrongValue(source, 'key=value:effect', item);
  const [problem] = [
    ...qualifiedNameErrors(key).map((why) => `key ${JSON.stringify(key)}: ${why}`),
    ...labelValueErrors(value),
  ];
  if (problem !== undefined) throw new UsageError(`${source} has an invalid taint ${JSON.stringify(item)}: ${problem}`);
  if (!effects.includes(effect))
    throw new UsageError(
      `${source} has an unknown effect ${JSON.stringify(effect)}${didYouMeanOneOf(effect, effects)}`,
    );
  return { key, ...(value === '' ? {} : { value }), effect };
}

/** Taints `key=value:Effect`, separated by commas; each pair of key and effect may occur once. */
export const taintList = itemList<Taint>(
  '[]api.Taint',
  parseTaint,
  ({ key, value = '', effect }) => `${key}=${value}:${effect}`,
  (taints, source) => {
    const seen = new Set<string>();
    for (const { key, effect } of taints) {
      const identity = `${key}:${effect}`;
      if (seen.has(identity)) throw new UsageError(`${source} contains the taint ${identity} twice`);
      seen.add(identity);
    }
    return taints;
  },
);
