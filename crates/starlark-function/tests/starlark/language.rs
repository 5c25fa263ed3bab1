use super::*;

#[test]
fn sets_recursion_and_statements_outside_of_functions() {
    let program = "
x = set(['foo', 'bar'])
print(x)
def fib(n):
  if n == 0 or n == 1:
    return n
  else:
    return fib(n-1) + fib(n-2)
print(fib(3))
if True:
  x = 1
x = x + 1
for i in [1, 2]:
  x += i
print(x)
";
    assert_eq!(prints(program), ["set([\"foo\", \"bar\"])", "2", "5"]);
}

#[test]
fn while_loops() {
    let program = "
x = 0
while x < 10:
  x += 1
  if x == 2:
    continue
  if x == 5:
    break
  print(x)
def count(n):
  found = []
  while n > 0: found.append(n); n -= 1
  while True:
    while found and found[-1] < 3:
      found.pop()
    if not found or found[-1] >= 3:
      return found
print(count(5))
while False:
  fail('not here')
";
    assert_eq!(prints(program), ["1", "3", "4", "[5, 4, 3]"]);
}

#[test]
fn the_usual_functions_are_there() {
    let program = "
print(abs(-1), any([0, 1]), all([]), bool(1), chr(65), dict(a = 1), dir({})[0], list(enumerate(['x'])), float('1.5'))
print(getattr('x', 'upper')(), hasattr('x', 'upper'), int('0x1F', 0), len('abc'), max(1, 2), min(1, 2), ord('A'))
print(repr('x'), list(reversed([1, 2])), sorted([2, 1]), str(1), tuple([1]), type(1), list(zip([1], [2])), hash('a') == hash('a'))
print('%s-%d' % ('a', 1), '{}-{x}'.format('a', x = 1), 'a,b'.split(','), ' a '.strip(), 'abc'[1:], 7 // 2, 7 % 2, 1 if True else 2)
print({'a': 1} | {'b': 2}, [x * 2 for x in range(3) if x], {k: v for k, v in [('a', 1)]})
def f(a, *args, b = 2, **kwargs):
  return (a, args, b, kwargs)
print(f(1, 2, 3, b = 4, c = 5), (lambda x: x + 1)(1))
print('a', 'b', sep = '-') if False else None
";
    assert_eq!(
        prints(program),
        [
            "1 True True True A {\"a\": 1} clear [(0, \"x\")] 1.5",
            "X True 31 3 2 1 65",
            "\"x\" [2, 1] [1, 2] 1 (1,) int [(1, 2)] True",
            "a-1 a-1 [\"a\", \"b\"] a bc 3 1 1",
            "{\"a\": 1, \"b\": 2} [2, 4] {\"a\": 1}",
            "(1, (2, 3), 4, {\"c\": 5}) 2",
        ]
    );
}

#[test]
fn functions_can_call_each_other_ten_thousand_levels_deep() {
    let program = "def f(n):\n  return 0 if n == 0 else 1 + f(n - 1)\nprint(f(9990))";
    assert_eq!(prints(program), ["9990"]);
    let program = "def f(n):\n  return 1 + f(n)\nf(1)";
    let message = failure(program, &[]);
    assert_eq!(message, "Starlark call stack overflow");
}

#[test]
fn a_list_cannot_be_changed_while_it_is_gone_through() {
    let message = failure(
        "for r in ctx.resource_list['items']:\n  ctx.resource_list['items'].append(r)",
        &["kind: A\n"],
    );
    assert_eq!(message, "cannot change a list or a hash table during iteration");
}
