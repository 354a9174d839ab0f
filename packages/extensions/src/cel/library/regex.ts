import { createRequire } from 'node:module';
import type * as Re2 from 're2js';
import { Fault } from '../base/errors.ts';
import { type Functions, regexCost } from '../base/functions.ts';
import * as t from '../base/types.ts';
import { type CelValue, sizeOf, ValueList } from '../base/values.ts';

let library: typeof Re2 | undefined;

/** Loads the library for the first pattern, so that it does not slow down the start of the server. */
export function re2(): typeof Re2 {
  library ??= createRequire(import.meta.url)('re2js') as typeof Re2;
  return library;
}

const compiled = new Map<string, Re2.RE2JS>();
const maxCompiled = 256;

/** Compiles a pattern in the syntax of RE2, which matches in linear time. A fault describes an invalid pattern. */
export function compilePattern(pattern: string): Re2.RE2JS | Fault {
  let known = compiled.get(pattern);
  if (known === undefined) {
    try {
      known = re2().RE2JS.compile(pattern);
    } catch (error) {
      if (error instanceof re2().RE2JSException) return new Fault(error.message);
      throw error;
    }
    if (compiled.size >= maxCompiled) compiled.clear();
    compiled.set(pattern, known);
  }
  return known;
}

function matches(text: string, pattern: string): boolean | Fault {
  const regex = compilePattern(pattern);
  return regex instanceof Fault ? regex : regex.matcher(text).find();
}

function findAll(text: string, pattern: string, limit = -1n): ValueList | Fault {
  const regex = compilePattern(pattern);
  if (regex instanceof Fault) return new Fault(`Illegal regex: ${regex.message}`);
  const found: string[] = [];
  const matcher = regex.matcher(text);
  while ((limit < 0n || BigInt(found.length) < limit) && matcher.find()) found.push(matcher.group() ?? '');
  return new ValueList(found);
}

function find(text: string, pattern: string): string | Fault {
  const found = findAll(text, pattern, 1n);
  if (found instanceof Fault) return found;
  const first = found.size === 0 ? '' : found.get(0);
  return typeof first === 'string' ? first : '';
}

/** Adds the functions for regular expressions. */
export function addRegex(fns: Functions): void {
  const { stringType: text, intType: int, boolType: bool } = t;
  const texts = t.listType(text);
  const cost = ([x = null, pattern = null]: CelValue[]): number => regexCost(sizeOf(x), sizeOf(pattern));
  fns.global('matches', [text, text], bool, matches, { cost });
  fns.member('matches', [text, text], bool, matches, { cost });
  fns.member('find', [text, text], text, find, { cost });
  fns.member('findAll', [text, text], texts, (x, pattern) => findAll(x, pattern), { cost });
  fns.member('findAll', [text, text, int], texts, findAll, { cost });
}
