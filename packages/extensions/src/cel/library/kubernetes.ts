import {
  addQuantities,
  compareQuantities,
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  namePrefixErrors,
  parseInstant,
  parseQuantity,
  QuantityError,
  qualifiedNameErrors,
} from '@keelson/core';
import { canonicalBase64 } from '@keelson/core/internal';
import { Fault } from '../base/errors.ts';
import { byFirst, type Functions, regexCost } from '../base/functions.ts';
import * as t from '../base/types.ts';
import { maxInt, OpaqueValue, Optional, sizeOf, ValueList } from '../base/values.ts';
import { parseUrl } from './network.ts';

class QuantityValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Quantity';
  readonly text: string;

  constructor(text: string) {
    super();
    this.text = text;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof QuantityValue && compareQuantities(this.text, other.text) === 0;
  }

  /** The value as an integer; undefined if it has a fraction or exceeds 64 bits. */
  get whole(): bigint | undefined {
    const { unscaled, exponent } = parseQuantity(this.text);
    const divisor = 10n ** BigInt(Math.max(0, -exponent));
    const value = (unscaled * 10n ** BigInt(Math.max(0, exponent))) / divisor;
    const exact = exponent >= 0 || unscaled % divisor === 0n;
    return exact && value <= maxInt && value >= -maxInt - 1n ? value : undefined;
  }
}

function parseQuantityValue(text: string): QuantityValue | Fault {
  try {
    parseQuantity(text);
    return new QuantityValue(text);
  } catch (error) {
    if (error instanceof QuantityError) return new Fault(error.message);
    throw error;
  }
}

function negated(text: string): string {
  return text.startsWith('-') ? text.slice(1) : `-${text.replace(/^\+/, '')}`;
}

function addQuantityFunctions(fns: Functions): void {
  const { stringType: text, boolType: bool, intType: int } = t;
  const quantity = t.structType('kubernetes.Quantity');
  const order = (x: QuantityValue, y: QuantityValue): number => Math.sign(compareQuantities(x.text, y.text));
  const sum = (x: string, y: string): QuantityValue => new QuantityValue(addQuantities(x, y));
  fns.global('quantity', [text], quantity, parseQuantityValue, { cost: byFirst() });
  fns.global('isQuantity', [text], bool, (x: string) => !(parseQuantityValue(x) instanceof Fault), { cost: byFirst() });
  fns.member('isInteger', [quantity], bool, (x: QuantityValue) => x.whole !== undefined);
  fns.member('asInteger', [quantity], int, (x: QuantityValue) => {
    return x.whole ?? new Fault('cannot convert value to integer');
  });
  fns.member('asApproximateFloat', [quantity], t.doubleType, (x: QuantityValue) => {
    const { unscaled, exponent } = parseQuantity(x.text);
    return Number(`${unscaled}e${exponent}`);
  });
  fns.global('sign', [quantity], int, (x: QuantityValue) => BigInt(Math.sign(compareQuantities(x.text, '0'))));
  fns.member('isGreaterThan', [quantity, quantity], bool, (x, y) => order(x, y) > 0);
  fns.member('isLessThan', [quantity, quantity], bool, (x, y) => order(x, y) < 0);
  fns.member('compareTo', [quantity, quantity], int, (x, y) => BigInt(order(x, y)));
  fns.member('add', [quantity, quantity], quantity, (x, y) => sum(x.text, y.text));
  fns.member('add', [quantity, int], quantity, (x, y) => sum(x.text, String(y)));
  fns.member('sub', [quantity, quantity], quantity, (x, y) => sum(x.text, negated(y.text)));
  fns.member('sub', [quantity, int], quantity, (x, y) => sum(x.text, String(-y)));
}

type Identifier = string | bigint;

class Semver extends OpaqueValue {
  readonly typeName = 'kubernetes.Semver';
  readonly numbers: readonly bigint[];
  readonly prerelease: readonly Identifier[];

  constructor(numbers: readonly bigint[], prerelease: readonly Identifier[]) {
    super();
    this.numbers = numbers;
    this.prerelease = prerelease;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof Semver && this.compare(other) === 0;
  }

  compare(other: Semver): number {
    for (const [i, number] of this.numbers.entries()) {
      const order = orderOf(number, other.numbers[i] ?? 0n);
      if (order !== 0) return order;
    }
    const { length } = this.prerelease;
    if (length === 0 || other.prerelease.length === 0) return orderOf(other.prerelease.length, length);
    for (const [i, part] of this.prerelease.entries()) {
      const against = other.prerelease[i];
      if (against === undefined) return 1;
      if (typeof part !== typeof against) return typeof part === 'bigint' ? -1 : 1;
      const order = orderOf(part, against);
      if (order !== 0) return order;
    }
    return orderOf(length, other.prerelease.length);
  }
}

function orderOf<T extends string | bigint | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const semverForm =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

function semverFault(text: string): Fault {
  if (text === '') return new Fault('Version string empty');
  const parts = text.split('.', 3);
  if (parts.length !== 3) return new Fault('No Major.Minor.Patch elements found');
  const [major = '', minor = '', rest = ''] = parts;
  for (const [name, part] of Object.entries({ major, minor, patch: rest.split(/[-+]/)[0] ?? '' })) {
    const shown = JSON.stringify(part);
    if (part === '' || /\D/.test(part)) {
      return new Fault(
        name === 'patch' || part !== ''
          ? `Invalid character(s) found in ${name} number ${shown}`
          : `strconv.ParseUint: parsing ${shown}: invalid syntax`,
      );
    }
    if (part.length > 1 && part.startsWith('0')) {
      const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
      return new Fault(`${title} number must not contain leading zeroes ${shown}`);
    }
  }
  return new Fault('Invalid character(s) found in prerelease or build metadata');
}

function parseSemver(text: string, normalize = false): Semver | Fault {
  const whole = normalize ? normalizedSemver(text) : text;
  const [, major, minor, patch, prerelease = ''] = (whole.length <= 256 && semverForm.exec(whole)) || [];
  if (major === undefined || minor === undefined || patch === undefined) return semverFault(whole);
  const parts = prerelease === '' ? [] : prerelease.split('.');
  if (parts.some((part) => /^0\d+$/.test(part))) {
    return new Fault(`Numeric PreRelease version must not contain leading zeroes ${JSON.stringify(prerelease)}`);
  }
  return new Semver(
    [BigInt(major), BigInt(minor), BigInt(patch)],
    parts.map((part) => (/^\d+$/.test(part) ? BigInt(part) : part)),
  );
}

/** `v1.02` becomes `1.2.0`. */
function normalizedSemver(text: string): string {
  const [first = '', second, ...rest] = text.replace(/^v/, '').split('.');
  const parts = [first, ...(second === undefined ? [] : [second]), ...(rest.length > 0 ? [rest.join('.')] : [])];
  const trimmed = parts.map((part) => part.replace(/^0+(?=\d)/, ''));
  if (trimmed.length < 3 && /[-+]/.test(trimmed.at(-1) ?? '')) return text;
  while (trimmed.length < 3) trimmed.push('0');
  return trimmed.join('.');
}

function addSemver(fns: Functions): void {
  const { stringType: text, boolType: bool, intType: int } = t;
  const semver = t.structType('kubernetes.Semver');
  const cost = byFirst();
  const isSemver = (x: string, normalize?: boolean): boolean => !(parseSemver(x, normalize) instanceof Fault);
  fns.global('semver', [text], semver, (x) => parseSemver(x), { cost });
  fns.global('semver', [text, bool], semver, parseSemver, { cost });
  fns.global('isSemver', [text], bool, (x) => isSemver(x), { cost });
  fns.global('isSemver', [text, bool], bool, isSemver, { cost });
  fns.member('isGreaterThan', [semver, semver], bool, (x: Semver, y: Semver) => x.compare(y) > 0);
  fns.member('isLessThan', [semver, semver], bool, (x: Semver, y: Semver) => x.compare(y) < 0);
  fns.member('compareTo', [semver, semver], int, (x: Semver, y: Semver) => BigInt(x.compare(y)));
  for (const [i, name] of ['major', 'minor', 'patch'].entries()) {
    fns.member(name, [semver], int, (x: Semver) => x.numbers[i] ?? 0n);
  }
}

/** The validation of a named format, and the length of its pattern for the calculation of costs. */
type Format = readonly [errors: (text: string) => string[], pattern: number];

function unless(valid: (text: string) => boolean, message: string): (text: string) => string[] {
  return (text) => (valid(text) ? [] : [message]);
}

const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

const formats: Record<string, Format> = {
  dns1123Label: [dns1123LabelErrors, 30],
  dns1123Subdomain: [dns1123SubdomainErrors, 60],
  dns1035Label: [dns1035LabelErrors, 30],
  qualifiedName: [qualifiedNameErrors, 60],
  dns1123LabelPrefix: [(text) => namePrefixErrors('dns1123Label', text), 30],
  dns1123SubdomainPrefix: [(text) => namePrefixErrors('dns1123Subdomain', text), 60],
  dns1035LabelPrefix: [(text) => namePrefixErrors('dns1035Label', text), 30],
  labelValue: [labelValueErrors, 40],
  uri: [uriErrors, 1103],
  uuid: [unless((text) => uuid.test(text), 'does not match the UUID format'), 72],
  byte: [unless((text) => text !== '' && canonicalBase64(text) !== undefined, 'invalid base64'), 84],
  date: [unless((text) => parseInstant(`${text}T00:00:00Z`) !== undefined && text.length === 10, 'invalid date'), 72],
  datetime: [unless((text) => parseInstant(text) !== undefined, 'invalid datetime'), 72],
};

function uriErrors(text: string): string[] {
  const url = parseUrl(text);
  return url instanceof Fault ? [url.message] : [];
}

class FormatValue extends OpaqueValue {
  readonly typeName = 'kubernetes.NamedFormat';
  readonly name: string;
  readonly format: Format;

  constructor(name: string, format: Format) {
    super();
    this.name = name;
    this.format = format;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof FormatValue && other.name === this.name;
  }
}

function addFormats(fns: Functions): void {
  const format = t.structType('kubernetes.NamedFormat');
  const values = new Map(Object.entries(formats).map(([name, known]) => [name, new FormatValue(name, known)]));
  for (const [name, value] of values) fns.global(`format.${name}`, [], format, () => value);
  fns.global('format.named', [t.stringType], t.optionalType(format), (name: string) => {
    const value = values.get(name);
    return value ? new Optional(value) : Optional.none;
  });
  fns.member(
    'validate',
    [format, t.stringType],
    t.optionalType(t.listType(t.stringType)),
    (x: FormatValue, text: string) => {
      const errors = x.format[0](text);
      return errors.length === 0 ? Optional.none : new Optional(new ValueList(errors));
    },
    { cost: ([x, text]) => regexCost(sizeOf(text), x.format[1]) },
  );
}

/** Adds the functions of Kubernetes for quantities, semantic versions and formats. */
export function addKubernetes(fns: Functions): void {
  addQuantityFunctions(fns);
  addSemver(fns);
  addFormats(fns);
}
