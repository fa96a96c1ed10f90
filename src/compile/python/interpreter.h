// The order in which Python does statements and expressions, once for all who follow them. What a
// value is, and what becomes of it, is the follower's: symbolic numbers (describe), whole numbers
// and terms (readback), steps of a stack machine (skeleton).
#pragma once

#include <cstdint>
#include <string>

#include "compile/python/syntax.h"

namespace hemiola::compile {

/// How a statement ends: go on with the one behind it, with the next turn of its loop, behind its
/// loop, behind its function.
enum class Flow : std::uint8_t { on, next, left, returned };

/// A condition of an if statement, with what it guards. Interpreter::otherwise() is the rest.
struct Branch {
  const Node& statement;
  const Node& part;        ///< the statement itself, or one of its elif clauses
  std::size_t behind = 0;  ///< child of the statement from which on its other clauses stand

  const Node& condition() const { return *part.child(Field::condition); }
  const Node& body() const { return *part.child(Field::consequence); }
};

/// `Self` says what these do, each with a node, and may say otherwise what is here:
///   evaluate         an expression: expression(), with what limits its work
///   choose(branch)   a condition, what it guards, or otherwise()
///   for_statement, while_statement, other_statement (return, break and continue, too)
///   bind(name, value, statement), assign_other(target, value, statement)
///   literal (texts, too), identifier, attribute, subscript, call, comparison, boolean,
///   unary(sign or "not", value, node), binary(op, a, b, node), other_expression
template <class Self, class Value>
class Interpreter {
 protected:
  Flow block(const Node& node) {
    for (const Node* child : node.children)
      if (const Flow flow = self().statement(*child); flow != Flow::on) return flow;
    return Flow::on;
  }

  Flow statement(const Node& node) {
    switch (node.kind) {
      case Kind::expression_statement:
        for (const Node* child : node.children)
          if (child->kind == Kind::assignment)
            self().assignment(*child, node);
          else if (child->kind == Kind::augmented_assignment)
            augmented(*child);
          else if (child->kind != Kind::string)
            self().drop(*child);
        return Flow::on;
      case Kind::if_statement:
        return self().choose({node, node});
      case Kind::for_statement:
        return self().for_statement(node);
      case Kind::while_statement:
        return self().while_statement(node);
      case Kind::block:
        return self().block(node);
      default:
        return self().other_statement(node);
    }
  }

  void drop(const Node& node) { self().evaluate(node); }

  /// What is done where the condition of a branch does not hold.
  Flow otherwise(const Branch& branch) {
    const auto& children = branch.statement.children;
    for (std::size_t i = branch.behind; i < children.size(); ++i) {
      if (children[i]->kind == Kind::elif_clause)
        return self().choose({branch.statement, *children[i], i + 1});
      if (children[i]->kind == Kind::else_clause)
        return self().block(*children[i]->child(Field::body));
    }
    return Flow::on;
  }

  /// `a = b = value`: one value, and its targets from the left on.
  void assignment(const Node& node, const Node& statement) {
    const Node* right = node.child(Field::right);
    while (right != nullptr && right->kind == Kind::assignment) right = right->child(Field::right);
    if (right == nullptr) return;  // `a: type`
    const Value value = self().evaluate(*right);
    for (const Node* one = &node; one->kind == Kind::assignment; one = one->child(Field::right))
      self().assign(*one->child(Field::left), value, statement);
  }

  void assign(const Node& target, const Value& value, const Node& statement) {
    switch (target.kind) {
      case Kind::identifier:
        return self().bind(target, value, statement);
      case Kind::parenthesized_expression:
        return self().assign(*target.children.front(), value, statement);
      default:
        return self().assign_other(target, value, statement);
    }
  }

  void augmented(const Node& node) {
    const Node& left = *node.child(Field::left);
    std::string op = self().source().between(node, 0);
    op.pop_back();  // its `=`
    const Value before = self().evaluate(left);
    const Value more = self().evaluate(*node.child(Field::right));
    self().assign(left, self().binary(op, before, more, node), node);
  }

  Value expression(const Node& node) {
    switch (node.kind) {
      case Kind::parenthesized_expression:
        return self().evaluate(*node.children.front());
      case Kind::integer:
      case Kind::float_:
      case Kind::true_:
      case Kind::false_:
      case Kind::none:
      case Kind::string:
      case Kind::concatenated_string:
        return self().literal(node);
      case Kind::identifier:
        return self().identifier(node);
      case Kind::attribute:
        return self().attribute(node);
      case Kind::subscript:
        return self().subscript(node);
      case Kind::call:
        return self().call(node);
      case Kind::unary_operator:
      case Kind::not_operator:
        return unary_operation(node);
      case Kind::binary_operator:
        return self().operation(node);
      case Kind::comparison_operator:
        return self().comparison(node);
      case Kind::boolean_operator:
        return self().boolean(node);
      case Kind::conditional_expression:  // children: then, condition, else
        return self().conditional(node);
      default:
        return self().other_expression(node);
    }
  }

  Value unary_operation(const Node& node) {
    const Value value = self().evaluate(*node.children.front());
    const bool negates = node.kind == Kind::not_operator;
    return self().unary(negates ? "not" : self().source().text(node).substr(0, 1), value, node);
  }
  /// Where holds(value, node) says how a condition goes.
  Value conditional(const Node& node) {
    const Node& condition = *node.children[1];
    const bool holds = self().holds(self().evaluate(condition), condition);
    return self().evaluate(*node.children[holds ? 0 : 2]);
  }
  Value operation(const Node& node) {
    const Value a = self().evaluate(*node.children[0]);
    const Value b = self().evaluate(*node.children[1]);
    return self().binary(self().source().between(node, 0), a, b, node);
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace hemiola::compile
