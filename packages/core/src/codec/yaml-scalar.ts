import { exactInteger } from '../json/json.ts';

const nullText = /^(?:|~|null|Null|NULL)$/;
const trueText = /^(?:true|True|TRUE)$/;
const falseText = /^(?:false|False|FALSE)$/;
const decimalText = /^[-+]?(?:0|[1-9][0-9]*)$/;
/** `0o17` of YAML 1.2, and `017` of YAML 1.1, which manifests use for file modes and existing servers read so. */
const octalText = /^([-+]?)0o?([0-7]+)$/;
const hexText = /^([-+]?)0x([0-9a-fA-F]+)$/;
const floatText = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const specialText = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/**
 * The value of a plain scalar: null, boolean, number or text, by the core schema of YAML 1.2; times, `yes` and `no` are
 * text.
 *
 * @throws RangeError for numbers that JSON cannot represent: infinite, not a number, integers beyond 64 bits. Integers
 * that numbers cannot represent exactly are bigints.
 */
export function plainScalar(text: string): unknown {
  const first = text.charCodeAt(0);
  // A number begins with a digit, a sign or a dot; any other text cannot be a number.
  const numeric = (first >= 0x30 && first <= 0x39) || first === 0x2d || first === 0x2b || first === 0x2e;
  if (!numeric) {
    if (nullText.test(text)) return null;
    if (trueText.test(text)) return true;
    if (falseText.test(text)) return false;
    return text;
  }
  if (decimalText.test(text)) return integer(text.startsWith('+') ? text.slice(1) : text);
  const octal = octalText.exec(text);
  if (octal) return integer(signed(octal[1], `0o${octal[2]}`));
  const hex = hexText.exec(text);
  if (hex) return integer(signed(hex[1], `0x${hex[2]}`));
  if (floatText.test(text)) {
    const value = Number(text);
    if (Number.isFinite(value)) return value;
    throw new RangeError('a number is out of range');
  }
  if (specialText.test(text)) throw new RangeError('infinite values and NaN are not allowed');
  return text;
}

/**
 * The value of a scalar with one of the standard tags.
 *
 * @throws RangeError when text and tag do not fit, or the tag is none of the standard ones.
 */
export function taggedScalar(text: string, tag: string): unknown {
  if (tag === 'str') return text;
  const value = plainScalar(text);
  const fits =
    tag === 'null'
      ? value === null
      : tag === 'bool'
        ? typeof value === 'boolean'
        : (tag === 'float' || tag === 'int') && isNumberOf(tag, value);
  if (!fits) throw new RangeError(`a value does not fit its tag !!${tag.slice(0, 20)}`);
  return value;
}

function isNumberOf(tag: 'int' | 'float', value: unknown): boolean {
  return typeof value === 'bigint' || (typeof value === 'number' && (tag === 'float' || Number.isInteger(value)));
}

/**
 * Decimal text of an octal or hexadecimal literal. Literals of more than 64 bits are rejected before they are
 * converted.
 */
function signed(sign: string | undefined, literal: string): string {
  if (literal.length > 64) throw outOfRange();
  return `${sign === '-' ? '-' : ''}${BigInt(literal)}`;
}

function integer(text: string): number | bigint {
  const value = exactInteger(text);
  if (value === undefined) throw outOfRange();
  return value;
}

function outOfRange(): RangeError {
  return new RangeError('an integer does not fit into 64 bits');
}
